package main

import (
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestMemberOfAPod(t *testing.T) {
	m, err := memberOf("my-etcd-12", "etcd.shop")
	if err != nil || m.name() != "my-etcd-12" || m.ordinal != 12 || m.url(2379) != "http://my-etcd-12.etcd.shop:2379" {
		t.Errorf("%+v, %v", m, err)
	}
	for _, pod := range []string{"", "etcd", "12", "etcd-x"} {
		if m, err := memberOf(pod, "etcd.shop"); err == nil {
			t.Errorf("%q is %+v", pod, m)
		}
	}
}

// TestPeers names this member, which etcd does not know by its name yet.
func TestPeers(t *testing.T) {
	m := member{set: "etcd", ordinal: 1, domain: "etcd.shop"}
	got := m.peers([]*etcdserverpb.Member{
		{Name: "etcd-0", PeerURLs: []string{"http://etcd-0.etcd.shop:2380"}}, {PeerURLs: []string{"http://etcd-1.etcd.shop:2380"}},
	})
	if want := []string{"etcd-0=http://etcd-0.etcd.shop:2380", "etcd-1=http://etcd-1.etcd.shop:2380"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
