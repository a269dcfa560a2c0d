//go:build e2e

package e2e

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// strategy checks that the Deployment's strategy limits an update in place as natively.
func strategy(t *testing.T) {
	scenarios := map[string]func(*testing.T){"progress deadline": deadline}
	toV2 := func(s *stage) { s.setImage("web", "app=v2") }
	for name, d := range map[string]*appsv1.Deployment{
		"Recreate, 1 replica": web(1, recreating),
		"minReadySeconds":     web(3, minReadySeconds(4)),
	} {
		scenarios[name] = func(t *testing.T) {
			s := newStage(t, labelled)
			s.create(d)
			s.inPlace("web", once, func() { toV2(s) })
		}
	}
	for name, d := range map[string]*appsv1.Deployment{
		"Recreate, 3 replicas": web(3, recreating),
		"maxUnavailable 0":     web(3, rolling("0", "1")),
	} {
		scenarios[name] = func(t *testing.T) {
			s := newStage(t, labelled)
			s.create(d)
			s.recreated("web", func() { toV2(s) })
		}
	}
	together(t, scenarios)
}

// deadline checks that an update without progress is reported as natively, and can be undone.
func deadline(t *testing.T) {
	s := newStage(t, unpulled)
	s.create(web(3, progressDeadline(15)))
	s.inPlace("web", restarts{"app": {0, 1}}, func() {
		s.setImage("web", "app=missing")
		s.stalls("web")
		s.rollout("undo", "web")
	})
}

// stalls waits for the progress deadline, and checks that users are told of it.
func (s *stage) stalls(name string) {
	s.Helper()
	s.wait("the progress deadline", on(name, func(_ world, d *appsv1.Deployment) error {
		condition := progressing(d)
		if condition == nil || condition.Status != "False" || condition.Reason != "ProgressDeadlineExceeded" {
			return errors.New(describeDeployment(d))
		}
		return nil
	}))
	s.reported("Deployment", "InPlaceUpdateStalled")
	s.expectIn(s.refused("rollout", "status", ref(name), "--timeout=1m"), "exceeded its progress deadline")
}
