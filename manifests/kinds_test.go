package manifests

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
	"github.com/stayput/stayput/webhook"
)

// native matches the user names of native controllers in expressions.
var native = regexp.MustCompile(`system:serviceaccount:kube-system:[a-z0-9-]+`)

// TestWebhooksAreCalledForWhatTheyDecide checks that webhooks are called for writes of the native controllers, and for the kinds of
// objects, in the program's tables. If a name differed, every update would be native, without an error.
func TestWebhooksAreCalledForWhatTheyDecide(t *testing.T) {
	users, resources := map[string][]string{}, map[string][]string{}
	for _, c := range calls(t) {
		for _, condition := range c.MatchConditions {
			users[path(c)] = append(users[path(c)], native.FindAllString(condition.Expression, -1)...)
		}
		for _, rule := range c.Rules {
			resources[path(c)] = append(resources[path(c)], rule.Resources...)
		}
	}
	decided := webhook.Calls()
	for path, want := range decided {
		if !same(users[path], want.Users) {
			t.Errorf("%s is called for writes of %q, and decides on those of %q", path, users[path], want.Users)
		}
		if got, want := kindsBehind(resources[path]), pluralsOf(want.Kinds); !same(got, want) {
			t.Errorf("%s is called for %q, and decides on %q", path, got, want)
		}
	}
	for path := range resources {
		if _, known := decided[path]; !known {
			t.Errorf("%s is called, and decides nothing", path)
		}
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
		plural, _ := meta.UnsafeGuessKindToResource(apps.GroupVersion.WithKind(kind))
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
			if slices.Contains(rule.APIGroups, apps.GroupVersion.Group) && slices.Contains(rule.Verbs, verb) {
				may = append(may, rule.Resources...)
			}
		}
		if !same(may, want) {
			t.Errorf("it may %s %q, and needs %q", verb, may, want)
		}
	}
}
