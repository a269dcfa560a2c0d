package commands

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
)

// onTerminal returns what the command prints to a terminal of 60 columns, and its exit code.
func (s *server) onTerminal(arguments ...string) (string, int) {
	s.Helper()
	display, terminal, err := pty.Open()
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = display.Close() })
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 60}); err != nil {
		s.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		text, _ := io.ReadAll(display) // it ends with an error when the terminal is closed
		shown <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	arguments = append(arguments, "-n", "shop", "--server", s.url, "--kubeconfig", os.DevNull, "--cache-dir", s.TempDir())
	code := Run(s.Context(), arguments, streams{In: terminal, Out: terminal, ErrOut: terminal})
	if err := terminal.Close(); err != nil {
		s.Error(err)
	}
	return <-shown, code
}

// TestStrangersWriteNoControls: users who may write an Event or an annotation do not write to the terminal of those who read it, whether
// with escape sequences or with lines that look like the plugin's own.
func TestStrangersWriteNoControls(t *testing.T) {
	const forged = "\x1b]0;title\a\x1b[2J\u009b31m\rmoved\b\x7f\nLeader: nobody"
	const shown = `\u001b]0;title\u0007\u001b[2J\u009b31m moved\u0008\u007f`
	objects := partial("in-place", map[string]string{"app": "web", inplace.LabelUpdating: "1767262800"})
	web := objects[webPath].(*appsv1.Deployment)
	web.Annotations[inplace.AnnotationDecision] = recorded("in place"+forged, web)
	objects["/api/v1/namespaces/shop/events/e"].(*corev1.Event).Message = "Moving" + forged
	objects["/apis/coordination.k8s.io/v1/namespaces/stayput-system/leases/stayput"] = lease("stayput-1", 0)
	objects["/api/v1/namespaces/shop/events/g"] = &corev1.Event{Reason: report.EventBypassed, Message: "not held" + forged}
	s := serve(t, objects)
	for command, want := range map[string][]string{
		"status":            {"not held", "in place"},
		"status deploy/web": {"Moving", "in place"},
	} {
		said, _ := s.run(append(strings.Fields(command), "-n", "shop")...)
		if strings.ContainsAny(said.out, "\x1b\a\u009b\r\b\x7f") || strings.Contains(said.out, "\nLeader: nobody") {
			t.Errorf("%s prints what was forged: %q", command, said.out)
		}
		for _, text := range want {
			if !strings.Contains(said.out, text+shown) {
				t.Errorf("%s: %q is not shown after %q in %q", command, shown, text, said.out)
			}
		}
	}
}

// TestWatchOnATerminal checks that a bar shows the update, and that the whole status takes its place when the update is over.
func TestWatchOnATerminal(t *testing.T) {
	s := serve(t, partial("in-place", map[string]string{"app": "web", inplace.LabelUpdating: "1767262800"}))
	over := web()
	over.Status = appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 4, AvailableReplicas: 4}
	reads := 0
	s.read = func(path string) {
		if reads++; path == webPath && reads > 1 {
			s.objects = stored("in-place")
			s.objects[webPath] = over
		}
	}
	got, code := s.onTerminal("status", "deploy/web", "--watch")
	const bar = "\r[=====               ] in place, 1 of 4 pods updated; b wai\x1b[K"
	if !strings.Contains(got, bar+"\r\x1b[KDeployment shop/web\nMode:       in-place\n") || code != 0 {
		t.Errorf("exit code %d: %q", code, got)
	}
}
