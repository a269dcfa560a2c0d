//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const partitionLabel = "stayput.dev/partition"

// partition checks that an update goes as far as its partition allows, waits there, and continues when the partition is lowered.
func partition(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"stages":               stagesLowered,
		"promoted stages":      promoted,
		"native edit":          partitionNative,
		"resources":            partitionResized,
		"surge pods":           partitionWithSurgePods,
		"scaled at a stage":    partitionScaled,
		"creations at a stage": partitionCreations,
		"promote that stalls":  promoteStalls,
	})
	nightly(t, map[string]func(*testing.T){
		"deadline":             partitionDeadline,
		"promote by a CronJob": promotedByCronJob,
	})
}

// repartition sets how many pods keep their old revision. An empty value removes the label.
func (s *stage) repartition(name, value string) {
	s.Helper()
	change := partitionLabel + "=" + value
	if value == "" {
		change = partitionLabel + "-"
	}
	s.kubectl("", "label", ref(name), change, "--overwrite")
}

// keeps waits until all pods outside the partition are updated, and the status says so.
func (s *stage) keeps(name string, old, all int) {
	s.Helper()
	s.isSplit(name, old, all)
	s.tells(name, "waiting at partition", fmt.Sprintf("%d of %d pods updated", all-old, all))
}

// isSplit returns nil when old of all pods are not updated, and all are Ready.
func (s *stage) isSplit(name string, old, all int) {
	s.Helper()
	s.reaches(name, state{fmt.Sprintf("waiting with %d of %d pods updated", all-old, all), func(t podCounts) bool {
		return t == podCounts{done: all - old, untouched: old}
	}})
}

// standsStill updates another workload from beginning to end, which gives Stayput the time to make a wrong step.
func (s *stage) standsStill(tag string) {
	s.Helper()
	s.begin("resting", updatesOnly("clock"))
	s.tick(tag)
}

// atPartition creates a Deployment and updates it to the point at which one of its four pods is at the partition.
func atPartition(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, labelled)
	s.create(web(4))
	s.repartition("web", "1")
	s.begin("in place", inPlace)
	s.expectIn(s.setImage("web", "app=v2"), "in place", "partition 1")
	s.keeps("web", 1, 4)
	return s
}

func stagesLowered(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(1, named("clock")))
	s.create(web(4))
	before := s.pods("web")
	s.repartition("web", "100percent")
	s.standsStill("v2")
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.keeps("web", 4, 4)
	s.standsStill("v3")
	s.begin("in place", inPlace)
	s.repartition("web", "50percent")
	s.keeps("web", 2, 4)
	s.standsStill("v4")
	s.expectIn(s.refused("rollout", "status", ref("web"), "--timeout=1s"), "timed out")
	s.begin("in place", inPlace)
	s.repartition("web", "90percent") // reverts no pod
	s.standsStill("v5")
	s.begin("in place", inPlace)
	s.repartition("web", "0percent")
	s.completes("web")
	s.kept("web", before, once)
	s.runs("web", "v2")
}

// partitionResized checks that a pod that is only resized counts as any other, and that an undo reverts the resize.
func partitionResized(t *testing.T) {
	s := newStage(t, resizing)
	s.create(web(4, sized("10m", "32Mi")))
	before := s.pods("web")
	s.repartition("web", "1")
	s.begin("in place", inPlace)
	s.expectIn(s.setResources("web", "--requests=cpu=20m"), "in place: resizes app", "partition 1")
	s.keeps("web", 1, 4)
	s.rollout("undo", "web")
	s.completes("web")
	s.kept("web", before, nil)
	s.sized("web", "10m")
	s.setResources("web", "--requests=cpu=30m")
	s.keeps("web", 1, 4)
	s.repartition("web", "")
	s.completes("web")
	s.kept("web", before, nil)
	s.sized("web", "30m")
}

// partitionNative checks that a partition does not hold an update that is not possible in place.
func partitionNative(t *testing.T) {
	s := atPartition(t)
	s.begin("native", recreated)
	s.expectIn(s.setEnv("web", "COLOUR=green"), "recreate", "cannot be made in place is native for all pods")
	s.completes("web")
	s.runs("web", "v2")
}

// partitionWithSurgePods checks that surge pods are removed when the partition is reached.
func partitionWithSurgePods(t *testing.T) {
	s := newStage(t, surging)
	s.create(web(3, rolling("0", "1")))
	before := s.pods("web")
	s.repartition("web", "1")
	s.begin("stage", surge(1))
	s.setImage("web", "app=v2")
	s.keeps("web", 1, 3)
	s.begin("the rest", surge(1))
	s.repartition("web", "")
	s.completes("web")
	s.kept("web", before, once)
}

// partitionDeadline checks that the progress deadline does not pass at a partition.
func partitionDeadline(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(3, progressDeadline(10)))
	s.repartition("web", "2")
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.keeps("web", 2, 3)
	var renewed int
	var last metav1.Time
	s.wait("the time of the last progress to be renewed three times", on("web", func(_ world, d *appsv1.Deployment) error {
		for _, condition := range d.Status.Conditions {
			if condition.Type != appsv1.DeploymentProgressing {
				continue
			}
			if condition.Reason == "ProgressDeadlineExceeded" {
				t.Fatal("the deadline has passed at a stage")
			}
			if condition.Reason == "WaitingAtPartition" && !condition.LastUpdateTime.Equal(&last) {
				renewed, last = renewed+1, condition.LastUpdateTime
			}
		}
		if renewed < 4 {
			return fmt.Errorf("%d times", renewed)
		}
		return nil
	}))
	s.repartition("web", "")
	s.completes("web")
	s.runs("web", "v2")
}

// partitionScaled checks that scaling updates no pod.
func partitionScaled(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(4))
	s.repartition("web", "50percent")
	s.begin("scaling", Rules{Created: exactly(4), Deleted: exactly(6)})
	s.setImage("web", "app=v2")
	s.keeps("web", 2, 4)
	s.kubectl("", "scale", "deployment", "web", "--replicas=8")
	s.isSplit("web", 4, 8)
	s.kubectl("", "scale", "deployment", "web", "--replicas=2")
	s.isSplit("web", 1, 2)
	s.repartition("web", "")
	s.completes("web")
	s.runs("web", "v2")
}

// partitionCreations checks that pods that the ReplicaSet controller would create because of an older cache are not created, neither in the
// old ReplicaSet nor in the new one.
func partitionCreations(t *testing.T) {
	s := atPartition(t)
	for _, pod := range s.pods("web") {
		sibling := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
			ObjectMeta: metav1.ObjectMeta{GenerateName: "sibling-", Labels: pod.Labels, OwnerReferences: pod.OwnerReferences}}
		manifest, err := json.Marshal(sibling)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = kubectl(s.Context(), string(manifest), "-n", s.namespace, "create", "-f", "-", "--dry-run=server",
			"--as=system:serviceaccount:kube-system:replicaset-controller")
		if err == nil {
			t.Fatalf("a sibling of %s would be created", pod.Name)
		}
		s.expectIn(err.Error(), "its ReplicaSet has all its pods already")
	}
	s.repartition("web", "")
	s.completes("web")
}

// partitionsLeaderKilled checks that the next leader finds both workloads at their partitions, and leaves them there.
func partitionsLeaderKilled(t *testing.T) {
	long(t)
	m := meetStaged(t)
	t.Cleanup(func() { mended(t) })
	m.phase("killed", anyChurn, anyChurn)
	before := leadership(t)
	killProcess(m.stage, m.leader())
	m.eventually("another leader", func(context.Context) error {
		if now := leadership(t); now == before {
			return errors.New("it is still " + now)
		}
		return nil
	})
	m.each(func(name string) { m.repartition(name, "") })
	m.end("v2")
}

// leadership returns the identity of the leader. Each process has its own identity, so a pod whose container has restarted has another one.
func leadership(t *testing.T) string {
	t.Helper()
	lease, err := clients.CoordinationV1().Leases(ownNamespace).Get(t.Context(), ownName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

// partitionsGone checks that a partition holds only while Stayput runs. Without Stayput the native rollouts go on, and complete.
func partitionsGone(t *testing.T) {
	long(t)
	m := meetStaged(t)
	t.Cleanup(func() { restoreManagers(t) })
	m.phase("native", recreated, recreated)
	dismissManagers(m.stage)
	m.each(m.rollsOut)
	m.each(func(name string) { m.runs(name, "v2") })
	restoreManagers(t)
	m.each(m.completes)
}

// meetStaged returns a meeting whose updates wait at a partition.
func meetStaged(t *testing.T) meeting {
	t.Helper()
	m := meet(t, web(4), agent())
	m.each(func(name string) { m.repartition(name, "1") })
	m.phase("in place", inPlace, inPlace)
	m.setImages("v2")
	m.keeps("web", 1, 4)
	m.keeps(agents, 1, 3)
	return m
}
