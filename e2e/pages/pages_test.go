package pages_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stayput/stayput/e2e/pages"
)

const page = `# Page

Text with $ signs, and ` + "`kubectl get pods`, `kubectl`, `make\n  demo`" + `.

` + "```console" + `
$ kubectl get pods
NAME   READY
web    1/1

$ kubectl label deployment web \
    key=value
deployment.apps/web labeled
$ true
` + "```" + `

1. A list:

   ` + "```sh" + `
   # a comment
   make demo

   helm install \
     --wait
   ` + "```" + `

` + "```yaml" + `
kind: Deployment
` + "```" + `
`

func TestCommandsOfAPage(t *testing.T) {
	got, err := pages.OfPage(page)
	want := []pages.Command{
		{Line: 7, Text: "kubectl get pods", Output: []string{"NAME   READY", "web    1/1"}},
		{Line: 11, Text: "kubectl label deployment web key=value", Output: []string{"deployment.apps/web labeled"}},
		{Line: 14, Text: "true"},
		{Line: 21, Text: "make demo"},
		{Line: 23, Text: "helm install --wait"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v; want %+v", got, err, want)
	}
}

func TestSpansOfAPage(t *testing.T) {
	got := pages.Spans(page, "kubectl", "make")
	want := []pages.Command{{Line: 3, Text: "kubectl get pods"}, {Line: 3, Text: "make demo"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPagesThatAreRefused(t *testing.T) {
	for page, part := range map[string]string{
		"```\n$ kubectl get pods\n```":                    "neither console nor sh",
		"```console\n$ kubectl get pods":                  "no end",
		"```console\n$ kubectl apply -f - <<EOF\na\n```":  "not a whole command",
		"```sh\nmake \\\n```":                             "not a whole command",
		"```\nmake demo # so\n```":                        "neither console nor sh",
		"```yaml\na: 1\n```\n\n```text\n$ make help\n```": "line 6",
	} {
		if got, err := pages.OfPage(page); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %+v, error %v; want one with %q", page, got, err, part)
		}
	}
}

func TestCommandsOfAManifest(t *testing.T) {
	got, err := pages.OfManifest("# What it shows. A $ sign.\n#\n#   $ kubectl get pods\n#   NAME\n" +
		"kind: Pod # more\n#   $ kubectl get nodes\n")
	want := []pages.Command{{Line: 3, Text: "kubectl get pods", Output: []string{"NAME"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v; want %+v", got, err, want)
	}
}

func TestOutputs(t *testing.T) {
	for name, test := range map[string]struct {
		shown, actual string
		same          bool
	}{
		"equal":                   {"a b\nc", "a b\nc\n", true},
		"spaces":                  {"NAME   READY", "NAME READY  ", true},
		"order":                   {"a\nb", "b\na", true},
		"another word":            {"in place: restarts app", "in place: restarts side", false},
		"line too many":           {"a", "a\nb", false},
		"line twice":              {"a\na", "a", false},
		"line missing":            {"a\nb", "a", false},
		"any lines":               {"a\n...", "a\nb\nc", true},
		"any lines, one missing":  {"a\n...\nd", "a\nb\nc", false},
		"any text":                {"a ... c", "a b b c", true},
		"any text, another word":  {"a ... d", "a b b c", false},
		"no pattern":              {"a (b) c.d", "a (b) cxd", false},
		"pods":                    {"web-5d9f7c4b8-4kx2p 1/1", "web-6c8d9f5b7d-zzxxw 1/1", true},
		"pods, another state":     {"web-5d9f7c4b8-4kx2p 1/1", "web-6c8d9f5b7d-zzxxw 0/1", false},
		"ReplicaSets":             {"to web-5d9f7c4b8", "to web-6c8d9f5b7d", true},
		"ages":                    {"1 (5s ago) 2m", "1 (1m12s ago) 33s", true},
		"restarts are no ages":    {"0 33s", "1 33s", false},
		"times, nodes, addresses": {"09:41:07 node-1 10.244.1.7", "10:00:00 node-3 10.244.3.70", true},
	} {
		if said := pages.Differs(strings.Split(test.shown, "\n"), test.actual); (said == "") != test.same {
			t.Errorf("%s: the difference is %q, want one: %t", name, said, !test.same)
		}
	}
}
