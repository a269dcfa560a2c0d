//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// restartsWithinLimits edits three Deployments of one namespace at once, and then one of another namespace, where two pods may restart at a
// time. After every watch event two pods are out of service at most. All updates end in the same pods. No progress deadline passes while
// pods wait.
func restartsWithinLimits(t *testing.T) {
	long(t)
	const most = 2
	withFlags(t, []string{"--max-restarting-pods=2"})
	crowded, quiet := newScenario(t, labelled), newScenario(t, labelled)
	slow, names := readyAfter("app", "7s"), []string{"first", "second", "third"}
	for _, name := range names {
		crowded.submit(web(2, named(name), rolling("2", "0"), slow, progressDeadline(16)))
	}
	quiet.create(web(2, rolling("2", "0"), slow))
	before := map[string]map[types.UID]*corev1.Pod{}
	for _, name := range names {
		crowded.completes(name)
		before[name] = crowded.pods(name)
	}
	since := max(lastVersion(crowded), lastVersion(quiet))
	crowded.begin("in place", inPlace)
	for _, name := range names {
		crowded.setImage(name, "app=v2")
	}
	quiet.inPlace("web", once, func() { quiet.setImage("web", "app=v2") })
	for _, name := range names {
		crowded.completes(name)
		crowded.kept(name, before[name], once)
	}
	if ever(crowded.recorder, func(d *appsv1.Deployment) bool {
		return progressing(d) != nil && progressing(d).Reason == "ProgressDeadlineExceeded"
	}) {
		t.Error("the progress deadline has passed while pods waited for others")
	}
	countsOutOfService(t, most, since, crowded, quiet)
}

// lastVersion returns the version of the last event so far.
func lastVersion(s *scenario) uint64 {
	events := s.recorder.inOrder()
	return events[len(events)-1].version
}

// countsOutOfService replays the events of all scenarios since that version, and checks that at most so many pods are out of service after
// each, and that so many are at some moment.
func countsOutOfService(t *testing.T, most int, since uint64, scenarios ...*scenario) {
	t.Helper()
	var events []event
	for _, s := range scenarios {
		events = append(events, s.recorder.inOrder()...)
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.version, b.version) })
	w, highest := newWorld(), 0
	for _, e := range events {
		if w.apply(e); e.version <= since {
			continue
		}
		out := 0
		for _, pod := range w.pods {
			if !ready(pod) {
				out++
			}
		}
		if highest = max(highest, out); out > most {
			t.Errorf("%d pods are out of service after version %d of %s, and %d may be", out, e.version, e.object.GetName(), most)
		}
	}
	if highest < most {
		t.Errorf("%d pods are out of service at most, and %d may be", highest, most)
	}
}

const windowAnnotation = "stayput.dev/maintenance-window"

// windowCloses: an update of a Deployment and of a StatefulSet waits while the window of the namespace is closed, and says so. Nothing
// restarts, the status is true, and nothing falls back. An edit of the annotation opens the window, and both updates go on in place. A
// value that is no window is refused.
func windowCloses(t *testing.T) {
	s := newStatefulScenario(t, with(stateful, parallelismSetting, "0"))
	s.create(web(2))
	s.form(db(2))
	closed := time.Now().UTC().Add(12*time.Hour).Format("15:04-") + time.Now().UTC().Add(13*time.Hour).Format("15:04")
	s.windows("Sat 2:00-4:00", "is no window; write days, times and a time zone")
	s.windows(closed, "")
	before := map[string]map[types.UID]*corev1.Pod{"web": s.pods("web"), members: s.pods(members)}
	s.begin("the window is closed", inPlace)
	for name := range before {
		s.expectIn(s.setImage(name, "app=v2"), "maintenance window is closed: pods stay at the current revision and wait for the maintenance window, which opens on ")
		s.tells(name, "waiting for the maintenance window, which opens on ", "0 of 2 pods updated")
	}
	s.wait("the status to say when", on("web", func(_ world, d *appsv1.Deployment) error {
		if progressing(d) == nil || progressing(d).Reason != "WaitingForWindow" {
			return fmt.Errorf("it says %+v", progressing(d))
		}
		return says(progressing(d).Message, "waiting for the maintenance window, which opens on ")
	}))
	s.answers("", 0, []string{"the maintenance window, which opens on "}, "status", "deployment/web")
	for name, pods := range before {
		s.kept(name, pods, nil)
	}
	s.windows("always", "")
	for name, pods := range before {
		s.completes(name)
		s.kept(name, pods, once)
	}
}

// windows sets the maintenance window of the namespace, or expects that it is refused with these words.
func (s *scenario) windows(window, refused string) {
	s.Helper()
	_, _, err := kubectl(s.Context(), "", "annotate", "--overwrite", "namespace", s.namespace, windowAnnotation+"="+window)
	if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
		s.Fatalf("window %q: %v, want %q", window, err, refused)
	}
}
