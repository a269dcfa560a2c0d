package verdict

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// kinds begin the names of the tests that must have run. The value says whether their pods are updated in place.
var kinds = map[string]bool{"Deployment": true, "Daemon set": true, "StatefulSet": true, "ReplicaSet": false, "ControllerRevision": false}

// moved is the reason of the event about a pod that was updated in place. Tests end before the event about the complete update.
const moved = "UpdatedInPlace"

// Judge prints the failures, and reports whether there are none. If only some of the tests were to run, the others are not missing.
func (r *Runs) Judge(out io.Writer, some bool) bool {
	faults := slices.Concat(r.broken(), r.faults())
	if !some {
		faults = slices.Concat(faults, r.missing())
	}
	fmt.Fprintln(out)
	for _, fault := range faults {
		fmt.Fprintln(out, "FAIL:", fault)
	}
	if len(faults) == 0 {
		fmt.Fprintf(out, "ok: %d tests, in place as natively but for the %d that contradict a promise\n", len(r.names()), r.excepted())
	}
	return len(faults) == 0
}

// broken returns failures outside of tests.
func (r *Runs) broken() []string {
	var faults []string
	for _, failure := range r.native.broken {
		faults = append(faults, "natively: "+failure)
	}
	for _, failure := range r.inPlace.broken {
		faults = append(faults, "in place: "+failure)
	}
	return faults
}

func (r *Runs) faults() []string {
	var faults []string
	for _, test := range r.names() {
		if fault := r.fault(test); fault != "" {
			faults = append(faults, fault)
		}
	}
	return faults
}

func (r *Runs) fault(test string) string {
	native, ranNatively := r.native.tests[test]
	inPlace, ranInPlace := r.inPlace.tests[test]
	promise, excepted := exceptions[test]
	switch {
	case !ranNatively:
		return test + ": ran in place only"
	case !ranInPlace:
		return test + ": ran natively only"
	case !native.passed:
		return fmt.Sprintf("%s: fails natively, so the cluster or what stands in for the images is wrong: %s", test, native.failure)
	case excepted:
		return promise.fault(test, inPlace)
	case !inPlace.passed:
		return fmt.Sprintf("%s: fails in place: %s", test, inPlace.failure)
	}
	return ""
}

func (e exception) fault(test string, inPlace outcome) string {
	switch {
	case inPlace.passed:
		return fmt.Sprintf("%s: passes in place, so %q is not kept, or it is no exception", test, e.Contradicts)
	case inPlace.events[e.Event] == 0:
		return fmt.Sprintf("%s: fails in place, but for something else than %q, since there is no event %s: %s",
			test, e.Contradicts, e.Event, inPlace.failure)
	}
	return ""
}

// missing returns the tests that had to run and did not, and the updates in place that did not happen: without Stayput, all tests would
// pass.
func (r *Runs) missing() []string {
	var faults []string
	for test := range exceptions {
		if _, ran := r.inPlace.tests[test]; !ran {
			faults = append(faults, test+": is an exception, and there is no such test")
		}
	}
	for kind, updates := range kinds {
		ran, updated := r.ranInPlace(kind)
		switch {
		case !ran:
			faults = append(faults, "no test of a "+kind+" ran in place")
		case updates && !updated:
			faults = append(faults, "in no test of a "+kind+" a pod was updated in place: is Stayput installed?")
		}
	}
	slices.Sort(faults)
	return faults
}

func (r *Runs) ranInPlace(kind string) (ran, updated bool) {
	for test, outcome := range r.inPlace.tests {
		if strings.HasPrefix(test, kind+" ") {
			ran = true
			updated = updated || outcome.events[moved] > 0
		}
	}
	return ran, updated
}

// excepted counts the exceptions among the tests that ran.
func (r *Runs) excepted() int {
	count := 0
	for test := range exceptions {
		if _, ran := r.inPlace.tests[test]; ran {
			count++
		}
	}
	return count
}
