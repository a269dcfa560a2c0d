package steps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
)

// HookWait is about a pod that is out of service for its restart and still has annotations of pre-restart hooks.
type HookWait struct {
	Pod string
	// Hooks are these annotations.
	Hooks inplace.Hooks
	// Since is when the pod was taken out of service. The hooks hold it for no longer than Timeout.
	Since   time.Time
	Timeout time.Duration
	// TimedOut: they hold it no longer.
	TimedOut bool
}

// String returns one clause. It stays the same as long as the hooks do.
func (w HookWait) String() string {
	if w.TimedOut {
		return fmt.Sprintf("pod %s goes on with %s: not removed within %s", w.Pod, w.Hooks, w.Timeout)
	}
	return fmt.Sprintf("waiting for %s to be removed from pod %s", w.Hooks, w.Pod)
}

// AwaitHooks notes the hooks of a pod; nil if it has none.
func (d *PlanBuilder) AwaitHooks(wait *HookWait) {
	if wait == nil || slices.ContainsFunc(d.Result.HookWaits, func(w HookWait) bool { return w.Pod == wait.Pod }) {
		return
	}
	d.Result.HookWaits = append(d.Result.HookWaits, *wait)
	if !wait.TimedOut {
		d.Waiting = cmp.Or(d.Waiting, wait.String())
	}
}

// HooksPrefix is the prefix of the line from AboutHooks.
const HooksPrefix = "pre-restart hooks "

// AboutHooks returns one line about the hooks that a workload names; empty if the change asks for none.
func AboutHooks(workload map[string]string, change edit.Change, timeout time.Duration) string {
	hooks := inplace.HooksOf(workload)
	if len(hooks) == 0 || !change.Containers.Awaited(inplace.AuxiliaryOf(workload)) {
		return ""
	}
	var names []string
	for _, hook := range hooks {
		names = append(names, strings.TrimPrefix(hook, inplace.PreRestartHookPrefix))
	}
	about := HooksPrefix + strings.Join(names, ", ")
	if timeout == 0 {
		return about + " are not waited for: " + inplace.LabelPreRestartTimeout + " is 0"
	}
	return fmt.Sprintf("%s: a pod that is out of service restarts when their annotations (%sNAME) are removed, or after %s",
		about, inplace.PreRestartHookPrefix, timeout)
}
