//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/e2e/pages"
)

// walk is a page that takes its readers from nothing to the end. One reader runs its commands in their order.
type walk struct {
	page string
	// namespace is the one that the page makes and deletes.
	namespace string
	workload  string
	// restarts are those of the whole page.
	restarts restarts
}

// readings runs every command of the tutorials and the README, and checks what it prints.
func readings(t *testing.T) {
	scenarios := map[string]func(*testing.T){"README": readmeRead}
	for name, w := range map[string]walk{
		"first update": {"docs/tutorials/first-update.md", "hello", "web", restarts{"app": exactly(2)}},
		"examples":     {"examples/README.md", "examples", "worker", once},
	} {
		scenarios[name] = w.read
	}
	together(t, scenarios)
}

// read runs the commands of the page. From the first edit to the end no pod may come or go.
func (w walk) read(t *testing.T) {
	commands, err := pages.OfPage(contentOf(t, w.page))
	if err != nil {
		t.Fatalf("%s: %v", w.page, err)
	}
	s := w.scenario(t)
	r := s.reader()
	var finish func()
	for _, command := range commands {
		switch {
		case elsewhere(t, w.page, command):
			continue
		case finish == nil && changesTemplate(command):
			before := s.pods(w.workload)
			s.begin("in place", inPlace)
			finish = func() {
				s.completes(w.workload)
				s.kept(w.workload, before, w.restarts)
				s.begin("the end", Rules{Created: anyNumber, Deleted: anyNumber, Outage: true})
			}
		case finish != nil && strings.HasPrefix(command.Text, "kubectl delete namespace "):
			finish()
			finish = nil
		}
		r.run(w.page, command)
	}
	r.runSpans(w.page)
	if finish != nil {
		t.Errorf("%s does not delete namespace %s at the end", w.page, w.namespace)
	}
}

// changesTemplate reports whether a command changes a template.
func changesTemplate(command pages.Command) bool {
	return strings.Contains(command.Text, " set image ") && !strings.Contains(command.Text, "--dry-run")
}

// scenario is newScenario for a namespace that the page makes. What is left of an earlier run is removed.
func (w walk) scenario(t *testing.T) *scenario {
	t.Helper()
	s := &scenario{T: t, namespace: w.namespace, before: used()}
	gone := func() {
		ctx := context.Background()
		err := clients.CoreV1().Namespaces().Delete(ctx, w.namespace, metav1.DeleteOptions{})
		if err == nil {
			err = poll(ctx, func(ctx context.Context) error { return absent(ctx, w.namespace) })
		}
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", w.namespace, err)
		}
	}
	gone()
	t.Cleanup(gone)
	s.recorder = record(t, s.namespace)
	t.Cleanup(s.judge)
	return s
}

func absent(ctx context.Context, namespace string) error {
	_, err := clients.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, errors.New("namespace "+namespace+" is still there"))
}

// readmeRead runs the commands of the README that need no more than a Deployment in a namespace called shop.
func readmeRead(t *testing.T) {
	const page = "README.md"
	commands, err := pages.OfPage(contentOf(t, page))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	s := newScenario(t, unlabelled)
	s.create(web(4))
	before := s.pods("web")
	s.begin("in place", inPlace)
	r := s.reader()
	r.shop = s.namespace
	var said strings.Builder
	for _, command := range commands {
		if elsewhere(t, page, command) {
			continue
		}
		said.WriteString(r.run(page, command))
		if strings.Contains(command.Text, updateLabel) {
			s.managed("web") // an API server learns of a label within a second
		}
	}
	s.expectIn(said.String(), "Warning: stayput: in place: restarts app")
	s.completes("web")
	s.kept("web", before, once)
	r.runSpans(page)
}

// runSpans runs the commands that stand between words or in tables.
func (r reader) runSpans(page string) {
	r.Helper()
	for _, command := range pages.Spans(contentOf(r.T, page), "kubectl", "helm", "make", "go") {
		if !slices.Contains(mentionedOnly, command.Text) && !elsewhere(r.T, page, command) {
			r.run(page, command)
		}
	}
}

// mentionedOnly are no commands but names of commands, in sentences.
var mentionedOnly = []string{"kubectl apply", "kubectl rollout restart", "kubectl set image", "kubectl edit", "kubectl rollout undo"}

// notHere are commands that this test does not run, with the reason. What they name must exist.
var notHere = []struct {
	command *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`^make `), "it builds, starts or tests what the reader has already"},
	{regexp.MustCompile(`^helm `), "make e2e-chart installs, tests, upgrades and uninstalls the chart with Helm 3 and 4"},
	{regexp.MustCompile(`^export `), "the reader has the cluster's kubeconfig and programs"},
	{regexp.MustCompile(`^go build -o /usr/local/bin/kubectl-stayput `), "make plugin has built it"},
}

// elsewhere reports whether a command is not run here, and checks that what it names exists.
func elsewhere(t *testing.T, page string, command pages.Command) bool {
	t.Helper()
	for _, row := range notHere {
		if !row.command.MatchString(command.Text) {
			continue
		}
		t.Logf("%s:%d: not run: %s: %s", page, command.Line, command.Text, row.reason)
		if lost := missing(t, command.Text); len(lost) > 0 {
			t.Errorf("%s:%d: %s: there is no %s", page, command.Line, command.Text, strings.Join(lost, ", no "))
		}
		return true
	}
	return false
}

// missing returns the targets of make and the paths of the repository that a command names and that do not exist.
func missing(t *testing.T, command string) []string {
	t.Helper()
	var lost []string
	command, _, _ = strings.Cut(command, " # ")
	words := strings.Fields(command)
	for _, word := range words[1:] {
		switch {
		case words[0] == "make" && !strings.Contains(word, "="):
			if !slices.Contains(targets(t), word) {
				lost = append(lost, "target "+word)
			}
		case ofRepository.MatchString(word):
			if _, err := os.Stat(filepath.Join(repository, word)); err != nil {
				lost = append(lost, "file "+word)
			}
		}
	}
	return lost
}

// ofRepository matches a path in one of the folders that users meet.
var ofRepository = regexp.MustCompile(`^(\./)?(charts|cmd|manifests|examples|docs|e2e)(/|$)`)

// target matches a target of make that make help shows.
var target = regexp.MustCompile(`(?m)^([a-z0-9-]+):.* ## `)

// targets returns the targets of the makefiles.
func targets(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, file := range []string{"Makefile", "e2e/e2e.mk", "e2e/cluster/cluster.mk", "manifests/install.mk", ".ci/release/release.mk"} {
		for _, match := range target.FindAllStringSubmatch(contentOf(t, file), -1) {
			names = append(names, match[1])
		}
	}
	return names
}
