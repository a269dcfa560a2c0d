//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/stayput/stayput/e2e/pages"
)

// standIns are images of the test cluster's registry in place of those that pages and examples name, which it does not have. The test
// application takes its port from PORT, as hello-app does, and answers GET /. Nothing but these names is changed, and a command of Ollama.
var standIns = strings.NewReplacer(
	"us-docker.pkg.dev/google-samples/containers/gke/hello-app:1.0", appImage("v1"),
	"us-docker.pkg.dev/google-samples/containers/gke/hello-app:2.0", appImage("v2"),
	"tomcat:10.1-jdk21", appImage("v3"),
	"ollama/ollama:0.12.6", appImage("v4"),
	"ollama/ollama:0.13.5", appImage("v5"),
	`command: [sh, -c, "ollama serve & until ollama pull llama3.2; do sleep 1; done"]`, "args: [fill, /models]",
	"registry.example/app:v2", appImage("v2"),
)

// reader is a user who runs what a page shows, in a clone of the repository, with kubectl's plugin on the PATH.
type reader struct {
	*scenario
	folder     string
	kubeconfig string
	// shop is the namespace in place of the one that the README calls shop and does not make.
	shop string
}

// shop is that name as a word of its own.
var shop = regexp.MustCompile(`\bshop\b`)

// here returns text of a page with the names of this cluster.
func (r reader) here(text string) string {
	if r.shop != "" {
		text = shop.ReplaceAllLiteralString(text, r.shop)
	}
	return standIns.Replace(text)
}

// reader returns a user whose current namespace is that of the scenario.
func (s *scenario) reader() reader {
	s.Helper()
	r := reader{scenario: s, folder: s.TempDir()}
	r.kubeconfig = filepath.Join(r.folder, "kubeconfig")
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		s.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = s.namespace
	if err := clientcmd.WriteToFile(*config, r.kubeconfig); err != nil {
		s.Fatal(err)
	}
	r.copyExamples()
	return r
}

// copyExamples copies the examples, with images that the nodes can pull.
func (r reader) copyExamples() {
	r.Helper()
	if err := os.Mkdir(filepath.Join(r.folder, "examples"), 0o755); err != nil {
		r.Fatal(err)
	}
	for _, file := range exampleFiles(r.T) {
		content := standIns.Replace(contentOf(r.T, filepath.Join("examples", file)))
		for line := range strings.Lines(content) {
			if _, image, is := strings.Cut(line, " image: "); is && !strings.HasPrefix(image, registry) {
				r.Errorf("%s: standIns has no image in place of %s", file, image)
			}
		}
		if err := os.WriteFile(filepath.Join(r.folder, "examples", file), []byte(content), 0o644); err != nil {
			r.Fatal(err)
		}
	}
}

// lookAgain is how long a command that only shows something is repeated until it shows what the page does: ten seconds and more may pass
// before a reader looks.
const lookAgain = 20 * time.Second

// run runs a command as it is shown, checks its output if that is shown, and returns it.
func (r reader) run(page string, command pages.Command) string {
	r.Helper()
	began := time.Now()
	for {
		output, err := r.output(command.Text)
		differs := ""
		if command.Output != nil {
			differs = pages.Differs(strings.Split(r.here(strings.Join(command.Output, "\n")), "\n"), output)
		}
		if (err != nil || differs != "") && onlyShows(command.Text) && time.Since(began) < lookAgain {
			time.Sleep(time.Second / 2)
			continue
		}
		r.Logf("%s:%d: $ %s\n%s", page, command.Line, command.Text, output)
		if err != nil {
			r.Fatalf("%s:%d: %s: %v", page, command.Line, command.Text, err)
		}
		if differs != "" {
			r.Errorf("%s:%d: $ %s\n%s", page, command.Line, command.Text, differs)
		}
		return output
	}
}

// onlyShows reports whether a command may be repeated.
func onlyShows(command string) bool {
	return strings.HasPrefix(command, "kubectl ") && (strings.Contains(command, " get ") || strings.Contains(command, " stayput status"))
}

// output returns what a command prints, to both of its outputs.
func (r reader) output(command string) (string, error) {
	shell := exec.CommandContext(r.Context(), "bash", "-o", "pipefail", "-c", r.here(command))
	shell.Dir = r.folder
	shell.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig, "PATH="+binaries+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := shell.CombinedOutput()
	return string(output), err
}
