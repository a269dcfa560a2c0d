package verdict

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// limits is the page that exceptions quote.
const limits = "../../../docs/explanation/limits.md"

// The sentences that exceptions quote must be on the page.
func TestExceptionsQuoteTheLimits(t *testing.T) {
	page, err := os.ReadFile(limits)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\s+`).ReplaceAllString(string(page), " ")
	for test, each := range exceptions {
		if !strings.Contains(text, each.Contradicts) {
			t.Errorf("%s: %s does not say %q", test, limits, each.Contradicts)
		}
	}
}

const (
	rollover = "Deployment deployment should support rollover"
	scaling  = "Deployment deployment should support proportional scaling"
	rollback = "Daemon set should rollback without unnecessary restarts"
	canary   = "StatefulSet Basic StatefulSet functionality should perform canary updates"
)

func TestVerdict(t *testing.T) {
	tests := map[string]struct {
		native, inPlace func(*reported)
		some            bool
		want            string // a part of the output, which means a failure if it begins with "FAIL"
	}{
		"in place as natively": {want: "ok: 7 tests, in place as natively but for the 2 that"},
		"fails in place": {
			inPlace: func(r *reported) { r.fail(rollover, "no new ReplicaSet\nmore") },
			want:    "FAIL: " + rollover + ": fails in place: no new ReplicaSet\n",
		},
		"fails natively": {
			native: func(r *reported) { r.fail(rollover, "no image") },
			want:   "FAIL: " + rollover + ": fails natively, so the cluster or what stands in for the images is wrong: no image",
		},
		"hangs in place": {
			inPlace: func(r *reported) { r.end(rollover, types.SpecStateTimedout) },
			want:    "FAIL: " + rollover + ": fails in place",
		},
		"an exception passes": {
			inPlace: func(r *reported) { r.end(scaling, types.SpecStatePassed) },
			want:    "FAIL: " + scaling + `: passes in place, so "A bad image stops nothing" is not kept, or it is no exception`,
		},
		"an exception fails for another reason": {
			inPlace: func(r *reported) { r.say(rollback, "UpdateRecreatesPods") },
			want: "FAIL: " + rollback + `: fails in place, but for something else than "A bad image stops nothing", ` +
				`since there is no event ImagePullFailed`,
		},
		"an exception is gone": {
			native: func(r *reported) { r.remove(scaling) }, inPlace: func(r *reported) { r.remove(scaling) },
			want: "FAIL: " + scaling + ": is an exception, and there is no such test",
		},
		"aborted in place": {
			inPlace: func(r *reported) { r.remove(rollover) },
			want:    "FAIL: " + rollover + ": ran natively only",
		},
		"without Stayput": {
			inPlace: func(r *reported) { r.say("Daemon set should update pod"); r.say(rollover) },
			want:    "FAIL: in no test of a Daemon set a pod was updated in place: is Stayput installed?\nFAIL: in no test of a Deployment a",
		},
		"StatefulSets are native": {
			inPlace: func(r *reported) { r.say(canary) },
			want:    "FAIL: in no test of a StatefulSet a pod was updated in place: is Stayput installed?",
		},
		"no tests of a kind": {
			native: func(r *reported) { r.remove("ReplicaSet should adopt") }, inPlace: func(r *reported) { r.remove("ReplicaSet should adopt") },
			want: "FAIL: no test of a ReplicaSet ran in place",
		},
		"some tests only": {
			native: func(r *reported) { r.keep(rollover) }, inPlace: func(r *reported) { r.keep(rollover) }, some: true,
			want: "ok: 1 tests, in place as natively but for the 0 that",
		},
		"the suite does not begin": {
			inPlace: func(r *reported) { r.breakSetup("no node is ready") },
			want:    "FAIL: in place: SynchronizedBeforeSuite: no node is ready",
		},
		"skipped tests are left out": {
			native: func(r *reported) { r.add("Deployment needs a cloud", types.SpecStateSkipped) },
			want:   "ok: 7 tests",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			runs, err := Read(written(t, natively(), test.native), written(t, inPlace(), test.inPlace))
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			passed := runs.Judge(&said, test.some)
			if !strings.Contains(said.String(), test.want) {
				t.Errorf("said %s\nwant %s", said.String(), test.want)
			}
			if passed == strings.HasPrefix(test.want, "FAIL") {
				t.Errorf("passed: %v, with %s", passed, said.String())
			}
		})
	}
}

func TestTable(t *testing.T) {
	runs, err := Read(written(t, natively(), nil),
		written(t, inPlace(), func(r *reported) { r.fail(rollover, "no new ReplicaSet") }))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	runs.Table(&out)
	for _, line := range []string{
		`TEST +NATIVE +IN PLACE +EVENTS OF STAYPUT\n`,
		rollover + ` +passed 3s +FAILED 3s +InPlaceUpdateCompleted 2, UpdatedInPlace 1\n`,
		scaling + ` +passed 3s +excepted +ImagePullFailed 1\n`,
		`excepted: ` + scaling + "\n  It sets an image that does not exist, .*\n  Stayput promises: \"A bad image stops nothing\"",
	} {
		if !regexp.MustCompile(line).MatchString(out.String()) {
			t.Errorf("no line %q in\n%s", line, out.String())
		}
	}
}

func TestWithoutReport(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.json")
	if _, err := Read(missing, missing); err == nil || !strings.Contains(err.Error(), "the tests ended without a report") {
		t.Errorf("error is %v, want that there is no report", err)
	}
}

// reported is a report that a test changes.
type reported struct{ types.Report }

func natively() *reported {
	r := &reported{}
	for _, each := range []string{rollover, scaling, rollback, canary, "Daemon set should update pod", "ReplicaSet should adopt",
		"ControllerRevision should manage"} {
		r.add(each, types.SpecStatePassed)
	}
	return r
}

func inPlace() *reported {
	r := natively()
	r.say(rollover, "InPlaceUpdateCompleted", "InPlaceUpdateCompleted", moved)
	r.say("Daemon set should update pod", moved)
	r.say(canary, moved)
	for _, each := range []string{scaling, rollback} {
		r.fail(each, "an image is missing")
		r.say(each, "ImagePullFailed")
	}
	return r
}

// add adds a test with its name as the framework writes it, with labels.
func (r *reported) add(test string, state types.SpecState) {
	kind, rest, _ := strings.Cut(test, " should")
	r.SpecReports = append(r.SpecReports, types.SpecReport{
		ContainerHierarchyTexts: []string{"[sig-apps] " + kind + " [Serial]"},
		LeafNodeText:            strings.TrimSpace("should" + rest + " [Conformance]"),
		LeafNodeType:            types.NodeTypeIt, State: state, RunTime: 3 * time.Second,
	})
}

func (r *reported) of(test string) *types.SpecReport {
	for i := range r.SpecReports {
		if name(r.SpecReports[i]) == test {
			return &r.SpecReports[i]
		}
	}
	panic("no test " + test)
}

func (r *reported) end(test string, state types.SpecState) { r.of(test).State = state }

func (r *reported) fail(test, message string) {
	r.end(test, types.SpecStateFailed)
	r.of(test).Failure.Message = message
}

// say sets the events of a test.
func (r *reported) say(test string, reasons ...string) {
	entries := types.ReportEntries{}
	for _, reason := range reasons {
		entries = append(entries, types.ReportEntry{Name: Event, Value: types.WrapEntryValue(reason)})
	}
	r.of(test).ReportEntries = entries
}

func (r *reported) remove(test string) {
	kept := r.SpecReports[:0]
	for _, spec := range r.SpecReports {
		if name(spec) != test {
			kept = append(kept, spec)
		}
	}
	r.SpecReports = kept
}

func (r *reported) keep(test string) { r.SpecReports = types.SpecReports{*r.of(test)} }

func (r *reported) breakSetup(message string) {
	r.SpecReports = append(r.SpecReports, types.SpecReport{
		LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStateFailed, Failure: types.Failure{Message: message},
	})
}

// written writes the report to a file, as ginkgo does, and returns its path.
func written(t *testing.T, r *reported, change func(*reported)) string {
	t.Helper()
	if change != nil {
		change(r)
	}
	content, err := json.Marshal([]types.Report{r.Report})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
