//go:build e2e && upgrade

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// TestUpgrade replaces the installed version by another one, back again, and once more, each time in the middle of an update. Further
// updates begin while managers of both versions run. No pod may be replaced. make e2e-upgrade installs the former version and passes the
// path of its source.
func TestUpgrade(t *testing.T) {
	former := os.Getenv("OTHER_VERSION")
	if former == "" {
		t.Skip("OTHER_VERSION is not set; make e2e-upgrade does that")
	}
	t.Cleanup(func() { settleManagers(t, 0) })
	settleManagers(t, 30)
	for _, step := range []struct{ name, source string }{
		{"upgrade", repository}, {"rollback", former}, {"upgrade again", repository},
	} {
		if !t.Run(step.name, func(t *testing.T) { takenOver(t, step.source) }) {
			t.FailNow()
		}
	}
}

// settleManagers makes a new manager be Ready for some seconds before an old one is stopped. Installing does not change that, as no
// manifest has the field.
func settleManagers(t *testing.T, seconds int) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, seconds)
	if _, _, err := kubectl(context.Background(), "", "-n", ownNamespace, "patch", "deployment", ownName, "-p", patch); err != nil {
		t.Errorf("the managers' Deployment: %v", err)
	}
}

// takenOver installs the version of this source in the middle of updates.
func takenOver(t *testing.T, source string) {
	m := meet(t, web(4, slow), agent(lasting))
	installed := make(chan error, 1)
	m.inPlace(func() {
		m.partial()
		go func() { installed <- buildIn(source, "install", "BIN="+binaries) }()
	})
	mixed := 0
	for tag := 3; ; tag = tag%9 + 1 { // a kubelet delays a container that gets an image again too soon
		select {
		case err := <-installed:
			m.lasts(err, mixed, tag)
			return
		default:
			before := twoVersions(m.scenario)
			m.update(tag)
			if before && twoVersions(m.scenario) {
				mixed++
			}
		}
	}
}

func (m meeting) update(tag int) {
	m.Helper()
	m.inPlace(func() { m.setImages(fmt.Sprintf("v%d", tag)) })
}

// lasts checks that the other version has replaced the former one, that both were active at the same time, and that the other version works
// alone.
func (m meeting) lasts(err error, mixed, tag int) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
	if mixed == 0 {
		m.Error("no update was made while managers of both versions lived")
	}
	mended(m.T)
	m.each(m.managed)
	m.update(tag)
}

// twoVersions reports whether managers of two images are Ready now.
func twoVersions(s *scenario) bool {
	s.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(s.Context(), managers)
	if err != nil {
		s.Fatal(err)
	}
	images := map[string]bool{}
	for i := range pods.Items {
		if ready(&pods.Items[i]) {
			images[pods.Items[i].Spec.Containers[0].Image] = true
		}
	}
	return len(images) > 1
}
