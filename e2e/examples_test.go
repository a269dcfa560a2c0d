//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/e2e/pages"
)

// example is a file of examples: what it needs, and what its update must do beside what its comment shows.
type example struct {
	workload string
	// long: make test does not update it.
	long bool
	// restarts are those of all commands in the comment together.
	restarts restarts
	// before makes what the file expects of a cluster and the test cluster does not have.
	before func(*scenario)
	// after checks what else the file promises.
	after func(*scenario)
}

var allExamples = map[string]example{
	"web":            {workload: "web", restarts: once, after: func(s *scenario) { s.runs("web", "v2") }},
	"worker":         {workload: "worker", long: true, restarts: once},
	"node-agent":     {workload: daemonSetPrefix + "node-agent", long: true, restarts: once},
	"single-replica": {workload: "single", restarts: once, before: volumeForClaim},
	"sidecar":        {workload: "sidecar", long: true, restarts: restarts{"proxy": exactly(1)}},
	"mesh-injected":  {workload: "meshed", long: true, restarts: once, before: injecting, after: injected},
	"jvm": {workload: "jvm", long: true, restarts: restarts{"tomcat": exactly(1)},
		after: func(s *scenario) { s.sized("jvm", "150m") }},
	"configmap-reload": {workload: "configured", restarts: once, after: coloursAreGreen},
	"canary":           {workload: "canary", long: true, restarts: once, after: func(s *scenario) { s.runs("canary", "v2") }},
	"gpu-inference": {workload: "inference", long: true, restarts: restarts{"server": exactly(1)},
		before: func(s *scenario) { s.plug("nvidia.com/gpu") }, after: modelIsThere},
}

// examples applies each file of examples in a namespace of its own, and updates it by the commands in its comment. The pods must stay.
func examples(t *testing.T) {
	scenarios, atNight := map[string]func(*testing.T){}, map[string]func(*testing.T){}
	for _, file := range exampleFiles(t) {
		name := strings.TrimSuffix(file, ".yaml")
		of, known := allExamples[name]
		if !known {
			t.Errorf("allExamples does not say what %s does", file)
		}
		updated := func(t *testing.T) { of.updated(t, filepath.Join("examples", file)) }
		if of.long {
			atNight[name] = updated
		} else {
			scenarios[name] = updated
		}
	}
	if found := len(scenarios) + len(atNight); found != len(allExamples) {
		t.Errorf("allExamples has %d rows, and there are %d files", len(allExamples), found)
	}
	together(t, scenarios)
	nightly(t, atNight)
}

// exampleFiles returns the names of the manifests in examples.
func exampleFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(repository, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".yaml") {
			names = append(names, entry.Name())
		}
	}
	return names
}

// contentOf returns a file of the repository.
func contentOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// updated applies the file and runs its commands, with Stayput's defaults: a drain of two seconds, and surge pods where they are needed.
func (e example) updated(t *testing.T, file string) {
	commands, err := pages.OfManifest(contentOf(t, file))
	if err != nil || len(commands) == 0 {
		t.Fatalf("%s has the commands %v: %v", file, commands, err)
	}
	s := newScenario(t, asShipped(surging))
	do(e.before, s)
	r := s.reader()
	r.run(file, pages.Command{Text: "kubectl apply -f " + file})
	s.completes(e.workload)
	before := s.pods(e.workload)
	s.begin("in place", inPlace)
	for _, command := range commands {
		r.run(file, command)
	}
	s.completes(e.workload)
	s.kept(e.workload, before, e.restarts)
	do(e.after, s)
}

func do(step func(*scenario), s *scenario) {
	if step != nil {
		step(s)
	}
}

// volumeForClaim makes a volume for the claim of single-replica.yaml, since the test cluster has no StorageClass.
func volumeForClaim(s *scenario) {
	const claim = "data"
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + claim}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:                      &corev1.ObjectReference{Namespace: s.namespace, Name: claim},
		PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}}}}
	if _, err := clients.CoreV1().PersistentVolumes().Create(s.Context(), volume, metav1.CreateOptions{}); err != nil {
		s.Fatalf("creating a volume: %v", err)
	}
	s.afterwards = append(s.afterwards, func() {
		if err := clients.CoreV1().PersistentVolumes().Delete(context.Background(), volume.Name, metav1.DeleteOptions{}); err != nil {
			s.Errorf("deleting volume %s: %v", volume.Name, err)
		}
	})
}

// injecting stands in for a service mesh: a policy adds a container to each new pod of the namespace.
func injecting(s *scenario) {
	mutates(s.T)
	s.decree(fmt.Sprintf(withSidecar, s.namespace, appImage("v9"), "8083"))
	s.admits(appImage("v1") + " " + appImage("v9"))
}

func injected(s *scenario) { s.runsIn("mesh", "meshed", "v9") }

// coloursAreGreen checks that the containers have the new configuration, as a variable and in a file.
func coloursAreGreen(s *scenario) {
	for _, pod := range s.pods("configured") {
		if shown := s.kubectl("", "exec", pod.Name, "--", "/app", "show", "/etc/colours/colour"); shown != "green" {
			s.Errorf("pod %s has the colour %q", pod.Name, shown)
		}
	}
}

// modelIsThere checks that the file is there, and that the pod still has its GPU.
func modelIsThere(s *scenario) {
	for _, pod := range s.pods("inference") {
		if size := len(s.kubectl("", "exec", pod.Name, "-c=server", "--", "/app", "show", "/models/cache")); size != 1<<20 {
			s.Errorf("the cache of pod %s has %d bytes", pod.Name, size)
		}
		if _, has := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; !has {
			s.Errorf("pod %s has no GPU", pod.Name)
		}
	}
}
