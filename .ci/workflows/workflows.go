// Package workflows checks what GitHub and its bots read of this repository: the workflows, and the configuration of Renovate.
package workflows

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rhysd/actionlint"
)

// pinned is an action by the digest of its commit, with its version behind it: for people, and for Renovate, which updates both.
var pinned = regexp.MustCompile(`uses: [^@\s]+@[0-9a-f]{40} # v[0-9]+(\.[0-9]+)*$`)

// unpinned returns the lines of a workflow that name an action in any other way, and how many actions it uses. A tag can be moved to
// another commit; a digest cannot.
func unpinned(workflow []byte) (wrong []string, used int, err error) {
	parsed, problems := actionlint.Parse(workflow)
	if len(problems) > 0 {
		return nil, 0, problems[0]
	}
	lines := strings.Split(string(workflow), "\n")
	for _, uses := range actions(parsed) {
		used++
		if line := lines[uses.Pos.Line-1]; !pinned.MatchString(line) {
			wrong = append(wrong, fmt.Sprintf("%d: %s", uses.Pos.Line, strings.TrimSpace(line)))
		}
	}
	slices.Sort(wrong)
	return wrong, used, nil
}

// actions returns what the jobs and steps of a workflow use. What is in this repository itself needs no digest.
func actions(w *actionlint.Workflow) []*actionlint.String {
	var found []*actionlint.String
	for _, job := range w.Jobs {
		if job.WorkflowCall != nil {
			found = append(found, job.WorkflowCall.Uses)
		}
		for _, step := range job.Steps {
			if action, ok := step.Exec.(*actionlint.ExecAction); ok {
				found = append(found, action.Uses)
			}
		}
	}
	return slices.DeleteFunc(found, func(s *actionlint.String) bool { return strings.HasPrefix(s.Value, "./") })
}

// renovate is the part of Renovate's configuration that says which go.mod files it updates, and in which groups.
type renovate struct {
	EnabledManagers []string `json:"enabledManagers"`
	// IgnorePaths has to be there and empty: Renovate's recommended configuration ignores folders such as test and examples.
	IgnorePaths  *[]string `json:"ignorePaths"`
	PackageRules []rule    `json:"packageRules"`
}

type rule struct {
	MatchManagers  []string `json:"matchManagers"`
	MatchFileNames []string `json:"matchFileNames"`
	GroupName      string   `json:"groupName"`
}

// complaints says which of the modules Renovate would not update, or not in exactly one group, and which of its modules are not there.
func (r renovate) complaints(modules []string) []string {
	var wrong []string
	if !slices.Contains(r.EnabledManagers, "gomod") {
		wrong = append(wrong, "the manager gomod is not enabled")
	}
	if r.IgnorePaths == nil || len(*r.IgnorePaths) > 0 {
		wrong = append(wrong, "ignorePaths has to be []")
	}
	groups := r.groups()
	for _, module := range modules {
		if of := groups[module]; len(of) != 1 {
			wrong = append(wrong, fmt.Sprintf("%s is in the groups %q: it has to be in one", module, of))
		}
	}
	for name := range groups {
		if !slices.Contains(modules, name) {
			wrong = append(wrong, name+" is in a group, and is no module")
		}
	}
	slices.Sort(wrong)
	return wrong
}

// groups returns for each file that a rule of modules names the groups into which its updates go.
func (r renovate) groups() map[string][]string {
	groups := map[string][]string{}
	for _, rule := range r.PackageRules {
		if !slices.Contains(rule.MatchManagers, "gomod") || rule.GroupName == "" {
			continue
		}
		for _, name := range rule.MatchFileNames {
			groups[name] = append(groups[name], rule.GroupName)
		}
	}
	return groups
}
