package inplace

import "testing"

// TestInstead: a reason to fall back makes the update wait while the user wants no pod to be replaced, and it says what to do.
func TestInstead(t *testing.T) {
	for name, test := range map[string]struct {
		partition Partition
		code      string
		waits     bool
		says      string
	}{
		"neither window nor partition": {Partition{}, CodeRefused, false, ""},
		"a partition keeps some pods":  {Partition{Value: "3"}, CodeRefused, false, ""},
		"a closed window": {Partition{Closed: "the window"}, CodeRefused, true,
			"pods may be replaced after that, unless you edit the template again or undo it: why"},
		"a window that is not valid":   {Partition{WindowFlaw: "no"}, CodeFailing, true, ""},
		"a partition that keeps all":   {Partition{Value: "4"}, CodeNotAdmitted, true, ""},
		"a partition of 100percent":    {Partition{Value: "100percent"}, CodeBypassed, true, ""},
		"a partition that is no value": {Partition{Value: "half"}, CodeBypassed, true, ""},
		"uninstalled":                  {Partition{Closed: "the window"}, CodeUninstalled, false, ""},
		"no longer managed":            {Partition{Closed: "the window"}, CodeMode, false, ""},
		"being deleted":                {Partition{Closed: "the window"}, CodeDeleting, false, ""},
		"it fell back before":          {Partition{Closed: "the window"}, CodeFellBack, false, ""},
		"the strategy has changed":     {Partition{Closed: "the window"}, CodeStrategy, false, ""},
	} {
		partition, waits := test.partition.Instead(Reason{Code: test.code, Message: "why"}, 4)
		obstacle := partition.Obstacle
		if waits != test.waits || obstacle.Any() != test.waits {
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
