package audit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// event returns an event as the scheduler and the native controllers record it.
func event(t *testing.T, object, reason, message string) string {
	kind, name, _ := strings.Cut(object, "/")
	e := corev1.Event{InvolvedObject: corev1.ObjectReference{Namespace: "shop", Kind: kind, Name: name}, Reason: reason, Message: message}
	e.Namespace = "shop"
	return marshal(t, e)
}

const (
	insufficient = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found."
	ports        = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
	volume       = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
	quota        = `Error creating: pods "web-b-x2k4p" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4`
	policy       = `Error creating: pods "web-b-x2k4p" is forbidden: violates PodSecurity "restricted:latest"`
	overdue      = `ReplicaSet "web-b" has timed out progressing.`
)

// TestWhatRolloutsMet: the first two rollouts of web and that of agent would have been in place, that of db would not.
func TestWhatRolloutsMet(t *testing.T) {
	for name, test := range map[string]struct {
		events []string
		reason string // of the condition Progressing of web
		want   string
	}{
		"nothing": {want: ""},
		"a surge pod without room": {events: []string{event(t, "Pod/web-b-x2k4p", "FailedScheduling", insufficient)},
			want: `1   no room for pods, by events of the last hour   1   deployment/web in shop: ` + insufficient},
		"a port that is taken, and pods of two kinds": {events: []string{
			event(t, "Pod/db-0", "FailedScheduling", insufficient), event(t, "Pod/agent-x2k4p", "FailedScheduling", ports)},
			want: `2   no room for pods, by events of the last hour   1   daemonset/agent in shop: ` + ports},
		"pods of a workload that is not audited": {events: []string{
			event(t, "Pod/gone-x2k4p", "FailedScheduling", insufficient),
			event(t, "Pod/single", "FailedScheduling", insufficient), event(t, "Pod/web-x2k4p", "FailedScheduling", insufficient)}},
		"no volume": {events: []string{event(t, "Pod/db-0", "FailedScheduling", volume)}},
		"a quota, twice": {events: []string{
			event(t, "ReplicaSet/web-b", "FailedCreate", quota), event(t, "ReplicaSet/web-b", "FailedCreate", quota)},
			want: `1   no quota for pods, by events of the last hour   1   deployment/web in shop: ` + quota},
		"a policy": {events: []string{event(t, "ReplicaSet/web-b", "FailedCreate", policy)}},
		"the deadline": {reason: "ProgressDeadlineExceeded",
			want: `1   past progressDeadlineSeconds now   1   deployment/web in shop: ` + overdue},
		"in time": {reason: "ReplicaSetUpdated"},
	} {
		t.Run(name, func(t *testing.T) {
			c := shops(t)
			c.lists[eventsPath] = test.events
			condition := `"status":{"conditions":[{"type":"Progressing","status":"False","reason":"` + test.reason + `","message":` +
				marshal(t, overdue) + `}]}`
			c.lists[deploymentsPath][0] = strings.TrimSuffix(c.lists[deploymentsPath][0], "}") + "," + condition + "}"
			report, err := c.reader().Audit(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := report.PrintTables(&out); err != nil {
				t.Fatal(err)
			}
			if got := rowsOf(out.String()); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// rowsOf returns the rows of the table of what workloads met, with single gaps between columns.
func rowsOf(tables string) string {
	_, table, _ := strings.Cut(tables, "WHAT THEY MET")
	_, rows, _ := strings.Cut(table, "\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	columns := strings.FieldsFunc(strings.ReplaceAll(rows, "   ", "\x00"), func(r rune) bool { return r == 0 })
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	return strings.Join(columns, "   ")
}
