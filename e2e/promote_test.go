//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const onStallLabel = "stayput.dev/on-stall"

// promoted promotes an update stage by stage until all pods are updated.
func (w staged) promoted(t *testing.T) {
	s := newStage(t, labelled)
	w.create(s)
	by := s.promoter(w.name)
	before := s.pods(w.name)
	s.repartition(w.name, fmt.Sprint(w.pods-1))
	s.answers("", 0, []string{"nothing to promote"}, by...)
	s.begin("in place", inPlace)
	s.setImage(w.name, "app=v2")
	s.keeps(w.name, w.pods-1, w.pods)
	for kept := w.pods - 2; ; kept = max(0, kept-(w.pods-kept)) {
		said := fmt.Sprintf("has reached its stage: %d of %d pods are updated", w.pods-kept, w.pods)
		if kept == 0 {
			said = fmt.Sprintf("is updated: all %d pods", w.pods)
		}
		s.answers("", 0, []string{said}, by...)
		if kept == 0 {
			break
		}
	}
	s.completes(w.name)
	s.kept(w.name, before, once)
	s.runs(w.name, "v2")
}

// promoter returns the arguments of promote. A Deployment is promoted by the service account that docs/how-to/staged-rollouts.md describes.
func (s *stage) promoter(name string) []string {
	s.Helper()
	by := []string{"promote", ref(name), "--timeout", "2m"}
	if isDaemonSet(name) {
		return by
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "how-to", "staged-rollouts.md"))
	if err != nil {
		s.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(page), "```yaml\napiVersion: v1\nkind: ServiceAccount\n")
	recipe, _, found := strings.Cut("apiVersion: v1\nkind: ServiceAccount\n"+recipe, "\n```")
	if !found || !strings.Contains(recipe, "kind: CronJob") {
		s.Fatal("the page has no recipe with a CronJob")
	}
	rarely := strings.NewReplacer("namespace: shop", "namespace: "+s.namespace, "[shop]", "["+s.namespace+"]",
		`"*/10 * * * *"`, `"0 0 1 1 *"`)
	s.kubectl(rarely.Replace(recipe), "apply", "-f", "-")
	return append(by, "--as", "system:serviceaccount:"+s.namespace+":promote")
}

// promoteStalls checks that promote ends with an error, in the words of the condition, when the next stage crashes; and that it lowers the
// partition no further.
func promoteStalls(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(3, progressDeadline(10)))
	s.repartition("web", "2")
	s.begin("in place", inPlace)
	s.setImage("web", "app=crash")
	s.fails("web", "CrashLoopBackOff")
	s.answers("", 1, []string{"the update has stalled: ReplicaSet", "has timed out progressing."},
		"promote", "deployment/web", "--timeout", "1m")
	s.wait("the partition to be as before", on("web", func(_ world, d *appsv1.Deployment) error {
		if at := d.Labels[partitionLabel]; at != "2" {
			return errors.New("it is " + at)
		}
		return nil
	}))
	s.rollout("undo", "web")
	s.completes("web")
}

// undoOnStall checks that a crashing image goes back by itself, in the same pods, and only once: put back, it stays.
func undoOnStall(t *testing.T) {
	s := newStage(t, with(labelled, onStallLabel, "undo"))
	s.create(web(3, progressDeadline(10)))
	before := s.pods("web")
	s.begin("in place", inPlace)
	s.setImage("web", "app=crash")
	s.reported("Deployment", "InPlaceUpdateUndone")
	s.completes("web")
	s.kept("web", before, restarts{"app": anyNumber})
	s.runs("web", "v1")
	s.someNeverRestarted("web")
	s.setImage("web", "app=crash")
	s.tells("web", "The stalled update is not undone: it was undone before")
	s.rollout("undo", "web")
	s.completes("web")
	s.kept("web", before, restarts{"app": anyNumber})
	s.undoneOnce("web")
}

// undoOnStallOfTheOnlyPod checks the same where all pods have moved when the deadline passes.
func undoOnStallOfTheOnlyPod(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(1, progressDeadline(10)))
	before := s.pods("web")
	s.kubectl("", "label", "deployment/web", onStallLabel+"=undo")
	s.begin("in place", Rules{Created: none, Deleted: none, Outage: true})
	s.setImage("web", "app=crash")
	s.reported("Deployment", "InPlaceUpdateUndone")
	s.completes("web")
	s.kept("web", before, restarts{"app": anyNumber})
	s.runs("web", "v1")
	s.undoneOnce("web")
}

func (s *stage) undoneOnce(name string) {
	s.Helper()
	undone := 0
	s.eventually("the events", func(ctx context.Context) error {
		events, err := s.eventsOn(ctx, name)
		for _, e := range events {
			if e.Reason == "InPlaceUpdateUndone" && e.Type == corev1.EventTypeWarning {
				undone++
			}
		}
		return err
	})
	if undone != 1 {
		s.Errorf("it was undone %d times", undone)
	}
}
