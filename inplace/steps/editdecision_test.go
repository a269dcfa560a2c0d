package steps

import (
	"strings"
	"testing"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
)

func TestAboutDeadline(t *testing.T) {
	for grace, told := range map[time.Duration]bool{598 * time.Second: false, 599 * time.Second: true} {
		if about := AboutDeadline(2*time.Second, grace, 10*time.Minute); (about != "") != told {
			t.Errorf("with a grace period of %s users are told %q", grace, about)
		}
	}
}

func TestAboutHooks(t *testing.T) {
	restarts := edit.Change{Containers: edit.ContainerChanges{{Container: "app", Restart: true}}}
	hooks := map[string]string{inplace.AnnotationPreRestartHooks: "lb, shards"}
	for name, test := range map[string]struct {
		inForce map[string]string
		change  edit.Change
		timeout time.Duration
		want    string
	}{
		"hooks":            {hooks, restarts, time.Minute, "pre-restart hooks lb, shards: a pod"},
		"not waited for":   {hooks, restarts, 0, "pre-restart hooks lb, shards are not waited for"},
		"none":             {nil, restarts, time.Minute, ""},
		"nothing restarts": {hooks, edit.Change{}, time.Minute, ""},
	} {
		if got := AboutHooks(test.inForce, test.change, test.timeout); !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
