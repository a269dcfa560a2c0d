// Command member is the init container of an etcd cluster that grows by one member at a time, as charts do where pods come one after
// another (OrderedReady). It writes the configuration file of its pod's member. Its pod's name and the number at the end of it say which
// member that is. Member 0 begins a cluster of its own. Every other one asks the members before it to be added, until they do.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/yaml"
)

// pace is the pause between two attempts. etcd adds a member only if the others have been connected for seconds.
const pace = time.Second / 2

func main() {
	log.SetFlags(0)
	name := flag.String("name", "", "the `name` of the pod")
	domain := flag.String("domain", "", "the `domain` of the pods, a headless Service's")
	data := flag.String("data", "", "etcd's data `folder`")
	output := flag.String("output", "", "the configuration `file` to write")
	flag.Parse()
	m, err := memberOf(*name, *domain)
	if err == nil {
		err = m.configure(context.Background(), *data, *output)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// member is a member of the cluster: the pod set-ordinal.
type member struct {
	set     string
	ordinal int
	domain  string
}

func memberOf(pod, domain string) (member, error) {
	end := strings.LastIndex(pod, "-")
	ordinal, err := strconv.Atoi(pod[end+1:])
	if end < 0 || err != nil {
		return member{}, fmt.Errorf("%q does not end with a number, as names of a StatefulSet's pods do", pod)
	}
	return member{set: pod[:end], ordinal: ordinal, domain: domain}, nil
}

func (m member) name() string { return fmt.Sprintf("%s-%d", m.set, m.ordinal) }

func (m member) url(port int) string { return fmt.Sprintf("http://%s.%s:%d", m.name(), m.domain, port) }

// configure writes the configuration. A member that has data knows its cluster from there.
func (m member) configure(ctx context.Context, data, output string) error {
	peers, state := []string{m.name() + "=" + m.url(2380)}, "new"
	if _, err := os.Stat(filepath.Join(data, "member")); err != nil && m.ordinal > 0 {
		state = "existing"
		if peers, err = m.join(ctx); err != nil {
			return err
		}
	}
	configuration, err := yaml.Marshal(map[string]any{
		"name": m.name(), "data-dir": data,
		"listen-client-urls": "http://0.0.0.0:2379", "advertise-client-urls": m.url(2379),
		"listen-peer-urls": "http://0.0.0.0:2380", "initial-advertise-peer-urls": m.url(2380),
		"initial-cluster": strings.Join(peers, ","), "initial-cluster-state": state, "initial-cluster-token": m.domain,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(output, configuration, 0o644)
}

// join returns the members of the cluster, name=URL, when this one is among them.
func (m member) join(ctx context.Context) ([]string, error) {
	var endpoints []string
	for ordinal := range m.ordinal {
		endpoints = append(endpoints, member{m.set, ordinal, m.domain}.url(2379))
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 10 * pace})
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		members, err := m.added(ctx, client)
		if err == nil {
			return m.peers(members), nil
		}
		log.Printf("not added: %v", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

// added returns the members after this one was added, now or by an attempt before.
func (m member) added(ctx context.Context, client *clientv3.Client) ([]*etcdserverpb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*pace)
	defer cancel()
	listed, err := client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(listed.Members, func(each *etcdserverpb.Member) bool { return slices.Contains(each.PeerURLs, m.url(2380)) }) {
		return listed.Members, nil
	}
	added, err := client.MemberAdd(ctx, []string{m.url(2380)})
	if err != nil {
		return nil, err
	}
	return added.Members, nil
}

// peers returns name=URL of each member. This one has no name yet, because it has never run.
func (m member) peers(members []*etcdserverpb.Member) []string {
	var peers []string
	for _, each := range members {
		for _, url := range each.PeerURLs {
			name := each.Name
			if url == m.url(2380) {
				name = m.name()
			}
			peers = append(peers, name+"="+url)
		}
	}
	return peers
}
