//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	hooksAnnotation    = "stayput.dev/pre-restart-hooks"
	hookTimeoutSetting = "stayput.dev/pre-restart-timeout"
	// targetsHook is the annotation of examples/deregister, which has its targets in a ConfigMap of that name.
	targetsHook     = "pre-restart.hook.stayput.dev/" + targetsHookName
	targetsHookName = "targets"
)

// hooks checks that containers restart only when another controller has deregistered their pod, or has taken too long.
func hooks(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"as the example says": deregistersAsShipped,
	})
	nightly(t, map[string]func(*testing.T){
		"changed half-way, and timed out": hookHalfway,
	})
}

// hooked names the hook of examples/deregister.
func hooked(d *appsv1.Deployment) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, hooksAnnotation, targetsHookName)
}

// deregistersAsShipped does the same beside the files of examples/deregister. Only what their comment says is edited.
func deregistersAsShipped(t *testing.T) {
	program, err := buildDeregister()
	if err != nil {
		t.Fatal(err)
	}
	s := newScenario(t, labelled)
	push := exec.CommandContext(t.Context(), filepath.Join(binaries, "cluster"), "push", "deregister:1", program)
	if output, err := push.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	s.grantDeregister()
	edited := strings.NewReplacer("registry.example/", registry, "-namespace=shop", "-namespace="+s.namespace)
	s.kubectl(edited.Replace(contentOf(t, "examples/deregister/deployment.yaml")), "apply", "-f", "-")
	s.create(web(3, hooked))
	s.deregisters("web")
}

// deregisters updates the workload, and puts the events of each of its pods in order.
func (s *scenario) deregisters(name string) {
	s.Helper()
	s.registered(len(s.pods(name)))
	before := s.pods(name)
	s.begin("in place", inPlace)
	s.expectIn(s.setImage(name, "app=v2"), "pre-restart hooks targets: a pod that is out of service restarts when")
	s.completes(name)
	s.kept(name, before, once)
	s.runs(name, "v2")
	s.registered(len(before))
	want := []string{"out", "deregistered", "released", "patched", "stopped", "held", "registered"}
	for uid, pod := range before {
		if got := s.hookStory(uid); !slices.Equal(got, want) {
			s.Errorf("pod %s was %v", pod.Name, got)
		}
	}
}

// buildDeregister builds examples/deregister once for all scenarios.
var buildDeregister = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "stayput-e2e-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "deregister")
	build := exec.Command("go", "build", "-o", program, "./examples/deregister")
	build.Dir, build.Env = repository, append(os.Environ(), "CGO_ENABLED=0") // its image has no libraries
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return program, nil
})

// deregister runs examples/deregister until the test ends. The Recorder follows its targets.
func (s *scenario) deregister() {
	s.Helper()
	program, err := buildDeregister()
	if err != nil {
		s.Fatal(err)
	}
	s.grantDeregister()
	run := exec.CommandContext(s.Context(), program,
		"-kubeconfig", s.kubeconfigOf("deregister"), "-namespace", s.namespace, "-selector", "app")
	if err := run.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = run.Wait() }) // it ends with the context
}

// grantDeregister gives the program its rights and its targets. The Recorder follows these.
func (s *scenario) grantDeregister() {
	s.Helper()
	s.kubectl(contentOf(s.T, "examples/deregister/rights.yaml"), "apply", "-f", "-")
	list := cache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "configmaps", s.namespace,
		fields.OneTermEqualSelector("metadata.name", targetsHookName))
	if err := s.recorder.follow("configmaps", list); err != nil {
		s.Fatal(err)
	}
}

// setImageOfTargets sets an image of a workload with the hook, once all its pods are targets of examples/deregister. That runs once in a
// namespace.
func (s *scenario) setImageOfTargets(name, image string) string {
	s.Helper()
	if !s.deregistering {
		s.deregistering = true
		s.deregister()
	}
	s.wait("all pods of "+name+" to have the hook", of(name, func(now workload) error {
		for _, pod := range now.pods {
			if !isHeld(pod) {
				return fmt.Errorf("pod %s has none", pod.Name)
			}
		}
		return nil
	}))
	return s.setImage(name, image)
}

// kubeconfigOf returns a kubeconfig with which a program is that ServiceAccount.
func (s *scenario) kubeconfigOf(account string) string {
	s.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	token := strings.TrimSpace(s.kubectl("", "create", "token", account))
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	}
	file := filepath.Join(s.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		s.Fatal(err)
	}
	return file
}

// registered waits until so many pods are targets and have the annotation.
func (s *scenario) registered(pods int) {
	s.Helper()
	s.eventually("all pods to be targets", func(ctx context.Context) error {
		found, err := clients.CoreV1().ConfigMaps(s.namespace).Get(ctx, targetsHookName, metav1.GetOptions{})
		if err == nil && len(found.Data) != pods {
			err = fmt.Errorf("%d of %d are", len(found.Data), pods)
		}
		return err
	})
}

// hookStory returns what happened to a pod from the moment in which it was taken out of service.
func (s *scenario) hookStory(uid types.UID) []string {
	s.Helper()
	s.wait("the last events", func(world) error { return nil })
	var story []string
	var before *corev1.Pod
	target := false
	for _, e := range s.recorder.inOrder() {
		switch object := e.object.(type) {
		case *corev1.ConfigMap:
			if before == nil {
				continue
			}
			if _, is := object.Data[before.Name]; is != target {
				target = is
				story = append(story, map[bool]string{true: "registered", false: "deregistered"}[is])
			}
		case *corev1.Pod:
			if object.UID != uid {
				continue
			}
			story = append(story, changesOfPod(before, object)...)
			before = object
		}
	}
	return story[max(0, slices.Index(story, "out")):]
}

// changesOfPod returns which parts of the story an event has.
func changesOfPod(before, after *corev1.Pod) []string {
	var changes []string
	if before == nil {
		return nil
	}
	for _, fact := range []struct {
		is      func(*corev1.Pod) bool
		yes, no string
	}{
		{isOut, "out", "stopped"},
		{isHeld, "held", "released"},
		{func(pod *corev1.Pod) bool { return strings.HasSuffix(imagesOf(pod.Spec)["app"], "v2") }, "patched", "patched back"},
	} {
		switch was, is := fact.is(before), fact.is(after); {
		case is && !was:
			changes = append(changes, fact.yes)
		case was && !is:
			changes = append(changes, fact.no)
		}
	}
	return changes
}

func isHeld(pod *corev1.Pod) bool {
	_, has := pod.Annotations[targetsHook]
	return has
}

// hold sets the annotation on all pods of the test application by hand.
func (s *scenario) hold() {
	s.Helper()
	s.kubectl("", "annotate", "pods", "--all", targetsHook+"=by hand")
}

// releases removes the annotation from every pod.
func (s *scenario) releases() {
	s.Helper()
	s.kubectl("", "annotate", "pods", "--all", targetsHook+"-")
}

// hookHalfway: while a hook holds a pod, the user pauses the update, resumes it, and undoes it. Nothing has restarted then. Of a second
// update the hook times out.
func hookHalfway(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(2, hooked, rolling("1", "0"), progressDeadline(20)))
	s.hold()
	before := s.pods("web")
	s.begin("held", inPlace)
	s.setImage("web", "app=v2")
	s.wait("a pod to be held", draining("web"))
	s.answers("", 0, []string{"annotation " + targetsHook + " to be removed, for "}, "status", "deployment/web")
	s.tells("web", "waiting for annotation "+targetsHook+" to be removed from pod web-")
	s.rollout("pause", "web")
	serves := of("web", func(now workload) error {
		for _, pod := range now.pods {
			if !ready(pod) {
				return errors.New("out of service: " + describePod(pod))
			}
		}
		return nil
	})
	s.wait("both pods to serve again", serves)
	s.rollout("resume", "web")
	s.wait("a pod to be held again", draining("web"))
	s.rollout("undo", "web")
	s.completes("web")
	s.wait("both pods to serve", serves)
	s.kept("web", before, nil)
	s.begin("timed out", inPlace)
	s.kubectl("", "annotate", "deployment", "web", hookTimeoutSetting+"=3s")
	s.setImage("web", "app=v2")
	s.completes("web")
	s.kept("web", before, once)
	s.reported("Deployment", "PreRestartHookTimedOut")
	s.tells("web", "goes on with annotation "+targetsHook+": not removed within 3s")
}

// hookLeaderKilled kills the leader while hooks hold pods of a Deployment and of a DaemonSet. The next leader knows since when.
func hookLeaderKilled(t *testing.T) {
	long(t)
	m := meet(t, web(2, hooked, rolling("1", "0")), agent(templated(hooked)))
	t.Cleanup(func() { mended(t) })
	m.hold()
	m.phase("in place", inPlace, inPlace)
	m.setImages("v2")
	m.each(func(name string) { m.wait("a pod of "+name+" to be held", draining(name)) })
	before := leadership(t)
	killProcess(m.scenario, m.leader())
	m.eventually("another leader", func(context.Context) error {
		if leadership(t) == before {
			return errors.New("it is still " + before)
		}
		return nil
	})
	m.each(func(name string) { m.wait("a pod of "+name+" to be held still", draining(name)) })
	m.releases()
	m.end("v2")
}

// hooksWithoutManagers: without Stayput no hook holds anything. The native rollouts go on, and complete.
func hooksWithoutManagers(t *testing.T) {
	long(t)
	m := meet(t, web(2, hooked, rolling("1", "0")), agent(templated(hooked)))
	t.Cleanup(func() { restoreManagers(t) })
	m.hold()
	m.phase("in place", inPlace, inPlace)
	m.setImages("v2")
	m.each(func(name string) { m.wait("a pod of "+name+" to be held", draining(name)) })
	m.phase("native", recreated, recreated)
	dismissManagers(m.scenario)
	m.each(m.rollsOut)
	m.each(func(name string) { m.runs(name, "v2") })
	restoreManagers(t)
	m.each(m.completes)
}
