package e2e

import (
	"slices"
	"strings"
	"testing"
)

func TestWritesAreCounted(t *testing.T) {
	server, err := parseMetrics(`# HELP apiserver_request_total [STABLE] Counter of apiserver requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="PATCH",version="v1"} 5
apiserver_request_total{code="409",component="apiserver",dry_run="",group="apps",resource="replicasets",scope="resource",subresource="",verb="PUT",version="v1"} 3
apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="DELETE",version="v1"} 23
apiserver_request_total{code="422",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 29
apiserver_request_total{code="201",component="apiserver",dry_run="",group="events.k8s.io",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 7
apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 11
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 13
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 17
apiserver_request_total{code="201",component="apiserver",dry_run="",group="authorization.k8s.io",resource="subjectaccessreviews",scope="resource",subresource="",verb="POST",version="v1"} 19
`)
	if err != nil {
		t.Fatal(err)
	}
	want := counters{writes: 60, events: 7, refused: 55}
	want.refusals[kindOfRefusal("PUT", "replicasets")], want.refusals[kindOfRefusal("DELETE", "pods")] = 3, 23
	want.refusals[len(refusable)] = 29
	count, err := writesOf(server)
	if err != nil || count != want {
		t.Errorf("%+v instead of %+v, %v", count, want, err)
	}
	before := counters{writes: 0, events: 1, refused: 1}
	before.refusals[kindOfRefusal("DELETE", "pods")] = 2
	want = counters{writes: 20, events: 2, refused: 18}
	want.refusals[kindOfRefusal("PUT", "replicasets")], want.refusals[kindOfRefusal("DELETE", "pods")] = 1, 7
	want.refusals[len(refusable)] = 29. / 3
	if got := count.since(before).per(3); got != want {
		t.Errorf("%+v a pod instead of %+v", got, want)
	}
}

func TestMetricsAreRead(t *testing.T) {
	manager, err := parseMetrics(`# TYPE stayput_held_writes_total counter
stayput_held_writes_total{kind="Pod"} 2
stayput_held_writes_total{kind="ReplicaSet"} 1.5
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1e+06
`)
	if err != nil {
		t.Fatal(err)
	}
	managers := []scraped{manager, {}}
	if got := valuesOf(managers, "stayput_held_writes_total"); !slices.Equal(got, []float64{2, 1.5}) {
		t.Errorf("a counter is %v", got)
	}
	if got := valuesOf(managers, "process_resident_memory_bytes"); !slices.Equal(got, []float64{1e6}) {
		t.Errorf("a gauge is %v", got)
	}
	if _, err := parseMetrics(strings.Repeat("no metrics\n", 2)); err == nil {
		t.Error("a page of something else was read")
	}
	for kind, want := range map[string]bool{"Pod": true, "Node": false} {
		if got := manager.has("stayput_held_writes_total", map[string]string{"kind": kind}); got != want {
			t.Errorf("that there is a series of %s is %v", kind, got)
		}
	}
	if manager.has("stayput_pods_moved_total", nil) || !manager.has("process_resident_memory_bytes", nil) {
		t.Error("a metric is there that is not, or the other way round")
	}
}
