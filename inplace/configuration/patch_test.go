package configuration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	apiserver "gopkg.in/evanphx/json-patch.v4"

	"github.com/stayput/stayput/inplace/apps"
)

const deployment = `{"metadata":{"name":"web","resourceVersion":"5"%s},"spec":{"replicas":3,"template":{"metadata":{"labels":{"app":"web"}%s},"spec":{}}}}`

// TestPatches applies the patches with the library that the API server uses.
func TestPatches(t *testing.T) {
	now := Record{"configmap/web": "2"}
	const noted = `"stayput.dev/configuration":"{\"configmap/web\":\"2\"}"`
	for name, test := range map[string]struct{ own, template, noted, restarted string }{
		"bare": {"", "", `,"annotations":{` + noted + `}`, `,"annotations":{"stayput.dev/configuration":"MARK"}`},
		"with others": {`,"annotations":{"a":"1"}`, `,"annotations":{"b":"2"}`,
			`,"annotations":{"a":"1",` + noted + `}`, `,"annotations":{"b":"2","stayput.dev/configuration":"MARK"}`},
		"again, with a pace": {`,"annotations":{"stayput.dev/configuration":"{\"restarts\":\"2026-11-28T12:00:00Z 1m0s\"}"}`, "",
			`,"annotations":{"stayput.dev/configuration":"{\"configmap/web\":\"2\",\"restarts\":\"2026-11-28T12:00:00Z 1m0s\"}"}`,
			`,"annotations":{"stayput.dev/configuration":"MARK"}`},
		"again": {`,"annotations":{"stayput.dev/configuration":"{}"}`, `,"annotations":{"stayput.dev/configuration":"1"}`,
			`,"annotations":{` + noted + `}`, `,"annotations":{"stayput.dev/configuration":"MARK"}`},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprintf(deployment, test.own, test.template)
			var read apps.Deployment
			if err := json.Unmarshal([]byte(before), &read); err != nil {
				t.Fatal(err)
			}
			mark := markAfter(read.Spec.Template.Annotations()["stayput.dev/configuration"], now)
			equal(t, applied(t, before, Noting(&read, now)), fmt.Sprintf(deployment, test.noted, test.template))
			next := Pace{Restarted: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC), Apart: time.Minute}
			paced := strings.ReplaceAll(test.noted, `2\"}`, `2\",\"restarts\":\"2026-11-28T12:00:00Z 1m0s\"}`)
			equal(t, applied(t, before, Restarting(&read, read.Spec.Template, now, next)),
				fmt.Sprintf(deployment, paced, strings.ReplaceAll(test.restarted, "MARK", mark)))
		})
	}
}

// TestMarksDiffer checks that a restart changes the template even if an undo has brought back a former mark.
func TestMarksDiffer(t *testing.T) {
	now := Record{"certificate/tls": "2"}
	first := markAfter("", now)
	if second := markAfter(first, now); second == first || markAfter("", now) != first {
		t.Errorf("marks %s and %s", first, second)
	}
}

func applied(t *testing.T, to string, operations []jsonpatch.Operation) string {
	t.Helper()
	text, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := apiserver.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply([]byte(to))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(after)
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if !apiserver.Equal([]byte(got), []byte(want)) {
		t.Errorf("got %s, want %s", got, want)
	}
}
