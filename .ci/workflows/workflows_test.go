package workflows

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// step is a workflow with one step, of the given lines.
func step(lines string) []byte {
	return []byte("on: push\njobs:\n  job:\n    runs-on: ubuntu-latest\n    steps:\n      - " + lines + "\n")
}

func TestUnpinned(t *testing.T) {
	digest := strings.Repeat("0a", 20)
	for lines, want := range map[string][]string{
		"uses: actions/checkout@" + digest + " # v5.1.0":          nil,
		"name: x\n        uses: a/b/c@" + digest + " # v4":        nil,
		"run: 'echo uses: actions/checkout@v5'":                   nil,
		"uses: ./.github/actions/own":                             nil,
		"uses: actions/checkout@v5":                               {"6: - uses: actions/checkout@v5"},
		"uses: actions/checkout@" + digest:                        {"6: - uses: actions/checkout@" + digest},
		"uses: actions/checkout@" + digest[1:] + " # v5.1.0":      {"6: - uses: actions/checkout@" + digest[1:] + " # v5.1.0"},
		"uses: actions/checkout@" + digest + " # main":            {"6: - uses: actions/checkout@" + digest + " # main"},
		"{name: x, \"uses\": actions/checkout@v5}":                {"6: - {name: x, \"uses\": actions/checkout@v5}"},
		"uses: docker://alpine:3":                                 {"6: - uses: docker://alpine:3"},
		"run: x\n  called:\n    uses: a/b/.github/workflows/c@v1": {"8: uses: a/b/.github/workflows/c@v1"},
	} {
		got, _, err := unpinned(step(lines))
		if err != nil {
			t.Errorf("%s: %v", lines, err)
		}
		expect(t, got, want...)
	}
}

func TestActionsArePinned(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(root, ".github/workflows/*.y*ml"))
	all := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		wrong, used, err := unpinned(text)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, line := range wrong {
			t.Errorf("%s:%s: name the action by the digest of its commit, and its version behind it", path, line)
		}
		all += used
	}
	if all == 0 {
		t.Error("no workflow uses an action: does this test look in the right place?")
	}
}

func TestComplaints(t *testing.T) {
	none := []string{}
	gomod := []string{"gomod"}
	r := renovate{EnabledManagers: gomod, IgnorePaths: &none, PackageRules: []rule{
		{MatchManagers: gomod, MatchFileNames: []string{"go.mod", "gone/go.mod"}, GroupName: "released"},
		{MatchManagers: gomod, MatchFileNames: []string{"tools/go.mod", "go.mod"}, GroupName: "tools"},
		{MatchManagers: gomod, MatchFileNames: []string{"no/group/go.mod"}},
		{MatchManagers: []string{"custom.regex"}, MatchFileNames: []string{"other/go.mod"}, GroupName: "other"},
	}}
	expect(t, r.complaints([]string{"go.mod", "no/group/go.mod", "other/go.mod", "tools/go.mod"}),
		`go.mod is in the groups ["released" "tools"]: it has to be in one`,
		"gone/go.mod is in a group, and is no module",
		`no/group/go.mod is in the groups []: it has to be in one`,
		`other/go.mod is in the groups []: it has to be in one`)
	expect(t, renovate{}.complaints(nil), "ignorePaths has to be []", "the manager gomod is not enabled")
}

func TestEveryModuleIsInAGroup(t *testing.T) {
	var r renovate
	if err := json.Unmarshal(read(t, ".github/renovate.json"), &r); err != nil {
		t.Fatal(err)
	}
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "go.mod", "**/go.mod")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, r.complaints(strings.Fields(string(out))))
}

// TestKindImages compares the node images of the nightly workflow with the version of kind, which supports only the images of its own
// release, and with the releases of Kubernetes on which the whole suite runs.
func TestKindImages(t *testing.T) {
	nightly := string(read(t, ".github/workflows/nightly.yaml"))
	kind := regexp.MustCompile(`sigs\.k8s\.io/kind (v\S+)`).FindStringSubmatch(string(read(t, ".ci/kind/go.mod")))
	if notes := "https://github.com/kubernetes-sigs/kind/releases/tag/" + kind[1] + "\n"; !strings.Contains(nightly, notes) {
		t.Errorf("nightly.yaml: take the images that the notes of kind %s list, and name these notes: %s", kind[1], notes)
	}
	image := regexp.MustCompile(`- kindest/node:v([0-9]+\.[0-9]+)\.[0-9]+(@sha256:[0-9a-f]{64}\n)?`)
	var minors []string
	for _, found := range image.FindAllStringSubmatch(nightly, -1) {
		if minors = append(minors, found[1]); found[2] == "" {
			t.Errorf("nightly.yaml: %s has no digest", found[0])
		}
	}
	expect(t, minors, testClusters(t)...)
}

// testClusters returns the releases of Kubernetes that the test cluster can run, in ascending order.
func testClusters(t *testing.T) []string {
	paths, _ := filepath.Glob(filepath.Join(root, "e2e/cluster/kubernetes/*.mod"))
	release := regexp.MustCompile(`k8s\.io/kubernetes v([0-9]+\.[0-9]+)\.`)
	var minors []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		minors = append(minors, release.FindStringSubmatch(string(text))[1])
	}
	slices.Sort(minors)
	return minors
}
