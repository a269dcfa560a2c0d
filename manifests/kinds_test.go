package manifests

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/stayput/stayput/observe"
	"github.com/stayput/stayput/webhook"
)

// native matches the user names of native controllers in expressions.
var native = regexp.MustCompile(`system:serviceaccount:kube-system:[a-z0-9-]+`)

// TestWebhooksAreCalledForWhatTheyDecide checks that webhooks are called for writes of the native controllers, and for the kinds of
// objects, in the program's tables. If a name differed, every update would be native, without an error.
func TestWebhooksAreCalledForWhatTheyDecide(t *testing.T) {
	decided := webhook.Calls()
	for _, c := range calls(t) {
		want := decided[path(c)]
		var users []string
		for _, condition := range c.MatchConditions {
			users = append(users, native.FindAllString(condition.Expression, -1)...)
		}
		if !same(users, want.Users) {
			t.Errorf("%s is called for writes of %q, and decides on those of %q", c.Name, users, want.Users)
		}
		var resources []string
		for _, rule := range c.Rules {
			resources = append(resources, rule.Resources...)
		}
		if got, want := kindsBehind(resources), pluralsOf(want.Kinds); !same(got, want) {
			t.Errorf("%s is called for %q, and decides on %q", c.Name, got, want)
		}
		delete(decided, path(c))
	}
	for path := range decided {
		t.Errorf("no webhook configuration calls %s", path)
	}
}

// kindsBehind returns the resources of the kinds that requests for the given resources have. A request for a status has the object itself,
// and a request for a scale has a Scale.
func kindsBehind(resources []string) []string {
	var kinds []string
	for _, resource := range resources {
		of, part, _ := strings.Cut(resource, "/")
		if part == "scale" {
			of = "scales"
		}
		kinds = append(kinds, of)
	}
	return kinds
}

func pluralsOf(kinds []string) []string {
	var plurals []string
	for _, kind := range kinds {
		plural, _ := meta.UnsafeGuessKindToResource(observe.GroupVersion.WithKind(kind))
		plurals = append(plurals, plural.Resource)
	}
	return plurals
}

// same reports whether two lists have the same elements.
func same(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

// TestKindsMayBeWatched checks that the manager may read the workloads of its table and their revisions, and no others.
func TestKindsMayBeWatched(t *testing.T) {
	var want []string
	for _, of := range observe.Types() {
		want = append(want, of.Resource().Resource)
	}
	for _, verb := range []string{"get", "list", "watch"} {
		var may []string
		for _, rule := range clusterRole(t, "base/rbac.yaml", "stayput").Rules {
			if slices.Contains(rule.APIGroups, observe.GroupVersion.Group) && slices.Contains(rule.Verbs, verb) {
				may = append(may, rule.Resources...)
			}
		}
		if !same(may, want) {
			t.Errorf("it may %s %q, and needs %q", verb, may, want)
		}
	}
}
