package steps

import (
	"fmt"
	"strings"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
)

// AboutHooks returns one line about the hooks that the settings in force name; empty if the change asks for none.
func AboutHooks(inForce map[string]string, change edit.Change, timeout time.Duration) string {
	hooks := inplace.HooksOf(inForce)
	if len(hooks) == 0 || !change.Containers.Awaited(inplace.AuxiliaryOf(inForce)) {
		return ""
	}
	var names []string
	for _, hook := range hooks {
		names = append(names, strings.TrimPrefix(hook, inplace.PreRestartHookPrefix))
	}
	about := "pre-restart hooks " + strings.Join(names, ", ")
	if timeout == 0 {
		return about + " are not waited for: " + inplace.AnnotationPreRestartTimeout + " is 0"
	}
	return fmt.Sprintf("%s: a pod that is out of service restarts when their annotations (%sNAME) are removed, or after %s",
		about, inplace.PreRestartHookPrefix, timeout)
}
