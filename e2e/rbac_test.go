//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// right is one verb on one resource of an API group, as RBAC grants it and a request needs it.
type right struct{ group, resource, verb string }

func (r right) String() string { return strings.TrimSuffix(r.verb+" "+r.resource+"."+r.group, ".") }

// neverSeen are rights whose use no scenario can show, and why.
var neverSeen = map[right]string{
	{"apps", "deployments/finalizers", "update"}:  "required of clients that write an ownerReference, by an admission plugin that is off here",
	{"apps", "replicasets/finalizers", "update"}:  "the same",
	{"apps", "daemonsets/finalizers", "update"}:   "the same",
	{"apps", "statefulsets/finalizers", "update"}: "the same",
	{"", "events", "patch"}:                       "only when a leader's event repeats itself",
}

// maybeUnseen are rights whose use a scenario may or may not show, and why.
var maybeUnseen = map[right]string{
	{"events.k8s.io", "events", "patch"}:      "only when an event of ours repeats itself within minutes",
	{"coordination.k8s.io", "leases", "list"}: "managers that were there before the suite have listed already",
	{"apps", "controllerrevisions", "get"}:    "only after the API server has refused to patch one",
}

// TestRightsAreUsed checks that RBAC grants no right that Stayput does not use: a thief could use it. It runs after the scenarios, because
// go test goes by the names of files, and checks only if all of them ran.
func TestRightsAreUsed(t *testing.T) {
	if asked := flag.Lookup("test.run").Value.String(); testing.Short() || asked != "" && asked != "/." {
		t.Skip("only the whole suite uses every right")
	}
	used := usedRights(t)
	for _, given := range givenRights(t) {
		why, exempt := neverSeen[given]
		switch _, maybe := maybeUnseen[given]; {
		case maybe:
		case !used[given] && !exempt:
			t.Errorf("no scenario used the right to %s: take it out of manifests/base/rbac.yaml, or say in neverSeen why it cannot show", given)
		case used[given] && exempt:
			t.Errorf("the right to %s was used after all, so it is no longer one of neverSeen (%s)", given, why)
		}
	}
}

// givenRights returns the rights in manifests/base.
func givenRights(t *testing.T) []right {
	t.Helper()
	var given []right
	content, err := os.ReadFile(filepath.Join(repository, "manifests", "base", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var role rbacv1.Role // a ClusterRole has the same rules
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			given = append(given, rightsOf(rule)...)
		}
	}
	return given
}

func rightsOf(rule rbacv1.PolicyRule) []right {
	var rights []right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights = append(rights, right{group, resource, verb})
			}
		}
	}
	return rights
}

// usedRights returns the rights that Stayput has used since the suite began, according to the API server's audit log.
func usedRights(t *testing.T) map[right]bool {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(repository, ".cluster", "data", "kube-apiserver", "audit*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("the API server keeps no audit log (%v): make cluster-down cluster starts one that does", err)
	}
	used := map[right]bool{}
	for _, name := range logs {
		log, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := noteUse(log, began, used); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	return used
}

// audited has the fields of an event of audit.k8s.io/v1 that are about rights.
type audited struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	ObjectRef *struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus           metav1.Status    `json:"responseStatus"`
	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"`
}

// noteUse reads a log with one event a line. A refused request uses no right. Requests of the suite with Stayput's token do not count.
func noteUse(log io.Reader, since time.Time, used map[right]bool) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event audited
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return fmt.Errorf("%w: %s", err, lines.Text())
		}
		refused := event.ResponseStatus.Code >= http.StatusBadRequest
		if ref := event.ObjectRef; ref != nil && event.UserAgent != user && !refused && !event.RequestReceivedTimestamp.Time.Before(since) {
			used[right{ref.APIGroup, strings.TrimSuffix(ref.Resource+"/"+ref.Subresource, "/"), event.Verb}] = true
		}
	}
	return lines.Err()
}
