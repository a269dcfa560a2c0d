package manifests

import (
	"slices"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/stayput/stayput/inplace/readiness"
)

// serviceAccounts is the precedence of the flow schema that every API server has for service accounts
// (k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap).
const serviceAccounts = 9000

// TestStayputIsQueuedWithWhomItHolds checks that Stayput's requests match Stayput's flow schemas before the one of all service accounts,
// and that requests of its leader election get the priority level of leader elections.
func TestStayputIsQueuedWithWhomItHolds(t *testing.T) {
	schemas := flowSchemas(t)
	for name, level := range map[string]string{"stayput": "workload-high", "stayput-leader-election": "leader-election"} {
		spec := schemas[name].Spec
		if spec.PriorityLevelConfiguration.Name != level {
			t.Errorf("%s leads to %q instead of %s", name, spec.PriorityLevelConfiguration.Name, level)
		}
		if spec.MatchingPrecedence <= 0 || spec.MatchingPrecedence >= serviceAccounts {
			t.Errorf("%s is matched after the flow schema of all service accounts: %d", name, spec.MatchingPrecedence)
		}
		for _, rule := range spec.Rules {
			for _, subject := range rule.Subjects {
				account := subject.ServiceAccount
				if account == nil || account.Namespace != "stayput-system" || account.Name != readiness.ServiceAccount {
					t.Errorf("%s is about other users: %+v", name, subject)
				}
			}
		}
	}
	if schemas["stayput-leader-election"].Spec.MatchingPrecedence >= schemas["stayput"].Spec.MatchingPrecedence {
		t.Error("requests of the election find the other flow schema first")
	}
	if len(schemas) != 2 {
		t.Errorf("%d flow schemas, want 2", len(schemas))
	}
}

// TestElectionIsQueuedAsOne checks that all requests to the Lease that the Role allows, except lists and watches, are queued as leader
// election. Writes of persisted fallbacks are queued with Stayput's other writes.
func TestElectionIsQueuedAsOne(t *testing.T) {
	rules := flowSchemas(t)["stayput-leader-election"].Spec.Rules
	if len(rules) != 1 || len(rules[0].ResourceRules) != 1 {
		t.Fatalf("the rules are %+v", rules)
	}
	queued := rules[0].ResourceRules[0]
	for document := range strings.SplitSeq(read(t, "base/rbac.yaml"), "\n---\n") {
		var role rbacv1.Role
		if decode(t, document, &role); role.Kind != "Role" {
			continue
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				watches, election := verb == "list" || verb == "watch", slices.Equal(rule.APIGroups, queued.APIGroups)
				if election && !watches && !(slices.Equal(rule.Resources, queued.Resources) && slices.Contains(queued.Verbs, verb)) {
					t.Errorf("to %s %s is not queued as election", verb, rule.Resources)
				}
			}
		}
	}
}

func flowSchemas(t *testing.T) map[string]flowcontrolv1.FlowSchema {
	t.Helper()
	found := map[string]flowcontrolv1.FlowSchema{}
	for document := range strings.SplitSeq(read(t, "base/flow.yaml"), "\n---\n") {
		var schema flowcontrolv1.FlowSchema
		decode(t, document, &schema)
		found[schema.Name] = schema
	}
	return found
}
