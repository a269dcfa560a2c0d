package check

import (
	"encoding/json"
	"strings"
	"testing"
)

var printed = Report{Installed: true,
	Passed: []Passed{{Kubernetes, "v1.36.3"}},
	Findings: []Finding{
		{Error, Managers, "no manager leads:\nthere is \x1b[2Jno \u009bLease", "look at the log"},
		{Warning, Namespaces, "a label <is> wrong", "remove it"},
		{Warning, Images, "one node is old", "upgrade it"},
		{Unchecked, Rights, "forbidden", "ask an administrator"},
	}}

func TestPrintText(t *testing.T) {
	var out strings.Builder
	if err := printed.PrintText(&out); err != nil {
		t.Fatal(err)
	}
	want := `ok         Kubernetes: v1.36.3
error      managers: no manager leads: there is �[2Jno �Lease
           Mend it: look at the log
warning    labels: a label <is> wrong
           Mend it: remove it
warning    images first: one node is old
           Mend it: upgrade it
unchecked  rights: forbidden
           Mend it: ask an administrator
1 error, 2 warnings, 1 not checked.
`
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}

func TestPrintSummary(t *testing.T) {
	for _, test := range []struct {
		report Report
		want   string
	}{
		{Report{Installed: true}, "Nothing is wrong."},
		{Report{}, "Nothing is wrong with the cluster. Stayput is not installed."},
		{Report{Findings: printed.Findings[1:2]}, "1 warning."},
	} {
		if got := test.report.summary(); got != test.want {
			t.Errorf("%+v ends with %q, want %q", test.report, got, test.want)
		}
	}
}

// TestReportForPrograms checks the names of the fields, which programs read. Lists are lists also where they are empty.
func TestReportForPrograms(t *testing.T) {
	text, err := json.Marshal(Judge(Facts{ClusterFacts: ClusterFacts{Version: "v1.36.3"}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"installed":false`, `"findings":[{"level":"error","about":"native controllers","problem":"kube-system`,
		`"remedy":"run kube-controller-manager`, `"passed":[{"about":"Kubernetes","says":"v1.36.3`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
	if text, err = json.Marshal(Judge(*healthy(t))); err != nil || !strings.Contains(string(text), `"findings":[]`) {
		t.Errorf("%v: findings are no list in %s", err, text)
	}
}
