package inplace

import "testing"

// TestInstead: a reason to fall back makes the update wait while the user wants no pod to be replaced, and it says what to do.
func TestInstead(t *testing.T) {
	const edit = "; edit the template again, undo it, or set the label to in-place: why"
	only := "no pod is replaced, because label stayput.dev/update is in-place-only"
	for name, test := range map[string]struct {
		partition Partition
		mode      Mode
		code      string
		waits     bool
		stalls    bool
		says      string
	}{
		"neither window nor partition": {Partition{}, ModeInPlace, CodeRefused, false, false, ""},
		"a partition keeps some pods":  {Partition{Value: "3"}, ModeInPlace, CodeRefused, false, false, ""},
		"a closed window": {Partition{Closed: "the window"}, ModeInPlace, CodeRefused, true, false,
			"pods may be replaced after that, unless you edit the template again or undo it: why"},
		"a window that is not valid":   {Partition{WindowFlaw: "no"}, ModeInPlace, CodeFailing, true, false, ""},
		"a partition that keeps all":   {Partition{Value: "4"}, ModeInPlace, CodeNotAdmitted, true, false, ""},
		"a partition of 100%":          {Partition{Value: "100%"}, ModeInPlace, CodeBypassed, true, false, ""},
		"a partition that is no value": {Partition{Value: "half"}, ModeInPlace, CodeBypassed, true, false, ""},
		"in-place-only":                {Partition{}, ModeInPlaceOnly, CodeInjected, true, true, only + edit},
		"in-place-only, window closed": {Partition{Closed: "the window"}, ModeInPlaceOnly, CodeInjected, true, false, only + edit},
		"a lost revision": {Partition{}, ModeInPlaceOnly, CodeRevisionGone, true, true,
			only + "; delete the pod, or set the label to in-place: why"},
		"uninstalled":              {Partition{Closed: "the window"}, ModeInPlaceOnly, CodeUninstalled, false, false, ""},
		"no longer managed":        {Partition{Closed: "the window"}, ModeInPlaceOnly, CodeMode, false, false, ""},
		"being deleted":            {Partition{Closed: "the window"}, ModeInPlaceOnly, CodeDeleting, false, false, ""},
		"it fell back before":      {Partition{Closed: "the window"}, ModeInPlaceOnly, CodeFellBack, false, false, ""},
		"the strategy has changed": {Partition{}, ModeInPlaceOnly, CodeStrategy, false, false, ""},
	} {
		if _, waits := test.partition.Instead(Reason{Code: test.code}, ModeInPlace, 0); waits {
			t.Errorf("%s: an update without pods waits", name)
		}
		partition, waits := test.partition.Instead(Reason{Code: test.code, Message: "why"}, test.mode, 4)
		obstacle := partition.Obstacle
		if waits != test.waits || obstacle.Any() != test.waits || obstacle.Stalls != test.stalls {
			t.Errorf("%s: waits %t, %+v", name, waits, obstacle)
		}
		if waits && partition.Keeps(4) != 4 {
			t.Errorf("%s: it keeps %d of 4 pods", name, partition.Keeps(4))
		}
		if test.says != "" && obstacle.String() != test.says {
			t.Errorf("%s: it says %q", name, obstacle)
		}
	}
}
