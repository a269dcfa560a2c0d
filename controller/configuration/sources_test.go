package configuration

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// followed returns Sources of namespace shop, whose watches have seen ConfigMap web-config, and which that many workloads follow.
func followed(followers int) (*Sources, *listed) {
	there, from := newNamespace("shop"), &listed{}
	there.cache, there.watched[configMaps] = from, filled{}
	for i := range followers {
		there.followers[Follower{Kind: "Deployment", NamespacedName: types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)}}] = true
	}
	return &Sources{namespaces: map[string]*namespace{"shop": there}, queues: map[string]func(types.NamespacedName){}}, from
}

// listed is a cache that counts how often it is listed.
type listed struct {
	cache.Cache
	times int
}

func (l *listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.times++
	web := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web-config", ResourceVersion: fmt.Sprint(l.times)}}
	list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{web}
	return nil
}

// filled is a watch that has its first list.
type filled struct{ cache.Informer }

func (filled) HasSynced() bool { return true }

// TestFollowersShareWhatIsSeen: a namespace may have thousands of ConfigMaps and of workloads that follow them.
func TestFollowersShareWhatIsSeen(t *testing.T) {
	s, from := followed(0)
	there := s.namespaces["shop"]
	for _, want := range []string{"1", "1", "2"} {
		if want == "2" {
			there.forget()
		}
		if seen, err := there.read(t.Context()); err != nil || seen.ConfigMaps["web-config"] != want {
			t.Errorf("read %v, %v; want version %s", seen, err, want)
		}
	}
	if from.times != 2 {
		t.Errorf("the cache is listed %d times", from.times)
	}
}

// TestChangesAreTold: followers are told once of changes that come together, and again of the next.
func TestChangesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := followed(1000)
		told := 0
		s.queues["Deployment"] = func(types.NamespacedName) { told++ }
		for _, want := range []int{1000, 2000} {
			for range 100 {
				s.changed("shop")
			}
			time.Sleep(gather)
			synctest.Wait()
			if told != want {
				t.Errorf("%d workloads are told, want %d", told, want)
			}
		}
	})
}
