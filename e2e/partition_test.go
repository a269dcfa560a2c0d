//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const partitionSetting = "stayput.dev/partition"

// partition checks that an update goes as far as its partition allows, waits there, and continues when the partition is lowered.
func partition(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"stages":          stagesLowered,
		"promoted stages": promoted,
	})
	nightly(t, map[string]func(*testing.T){
		"promote that stalls":  promoteStalls,
		"deadline":             partitionDeadline,
		"promote by a CronJob": promotedByCronJob,
	})
}

// repartition sets how many pods keep their old revision. An empty value removes the annotation.
func (s *scenario) repartition(name, value string) {
	s.Helper()
	change := partitionSetting + "=" + value
	if value == "" {
		change = partitionSetting + "-"
	}
	s.kubectl("", "annotate", ref(name), change, "--overwrite")
}

// keeps waits until all pods outside the partition are updated, and the status says so.
func (s *scenario) keeps(name string, old, all int) {
	s.Helper()
	s.isSplit(name, old, all)
	s.tells(name, "waiting at partition", fmt.Sprintf("%d of %d pods updated", all-old, all))
}

// isSplit returns nil when old of all pods are not updated, and all are Ready.
func (s *scenario) isSplit(name string, old, all int) {
	s.Helper()
	s.reaches(name, state{fmt.Sprintf("waiting with %d of %d pods updated", all-old, all), func(t podCounts) bool {
		return t == podCounts{done: all - old, untouched: old}
	}})
}

// standsStill updates another workload from beginning to end, which gives Stayput the time to make a wrong step.
func (s *scenario) standsStill(tag string) {
	s.Helper()
	s.begin("resting", updatesOnly("clock"))
	s.tick(tag)
}

func stagesLowered(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(1, named("clock")))
	s.create(web(4))
	before := s.pods("web")
	s.repartition("web", "100%")
	s.standsStill("v2")
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.keeps("web", 4, 4)
	s.standsStill("v3")
	s.begin("in place", inPlace)
	s.repartition("web", "50%")
	s.keeps("web", 2, 4)
	s.standsStill("v4")
	s.expectIn(s.refused("rollout", "status", ref("web"), "--timeout=1s"), "timed out")
	s.begin("in place", inPlace)
	s.repartition("web", "90%") // reverts no pod
	s.standsStill("v5")
	s.begin("in place", inPlace)
	s.repartition("web", "0%")
	s.completes("web")
	s.kept("web", before, once)
	s.runs("web", "v2")
}

// partitionDeadline checks that the progress deadline does not pass at a partition.
func partitionDeadline(t *testing.T) {
	s := newScenario(t, labelled)
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

// partitionsLeaderKilled checks that the next leader finds both workloads at their partitions, and leaves them there.
func partitionsLeaderKilled(t *testing.T) {
	long(t)
	m := meetStaged(t)
	t.Cleanup(func() { mended(t) })
	m.phase("killed", anyChurn, anyChurn)
	before := leadership(t)
	killProcess(m.scenario, m.leader())
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
	dismissManagers(m.scenario)
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
