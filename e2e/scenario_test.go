//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	labelled    = map[string]string{updateLabel: "in-place"}
	inPlaceOnly = map[string]string{updateLabel: "in-place-only"}
	unlabelled  map[string]string
	// surging lets Deployments of which no pod may be unavailable have surge pods during an update.
	surging = with(labelled, surgeSetting, "needed")
	// replacing is a labelled namespace whose Deployments have surge pods wherever maxSurge allows them, which stay.
	replacing = with(labelled, surgeSetting, "replace")
	// unpulled switches pre-pulls off, so that updates to images that no node can pull begin.
	unpulled = with(labelled, parallelismSetting, "0")
)

// with returns the labels with one more.
func with(labels map[string]string, key, value string) map[string]string {
	more := map[string]string{key: value}
	maps.Copy(more, labels)
	return more
}

// together runs scenarios in parallel.
func together(t *testing.T, scenarios map[string]func(*testing.T)) {
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enter(t)
			scenarios[name](t)
		})
	}
}

// nightly runs scenarios in parallel that take long, or whose events the simulation has too. make test, which runs the suite with -short,
// leaves them out.
func nightly(t *testing.T, scenarios map[string]func(*testing.T)) {
	if !testing.Short() {
		together(t, scenarios)
	}
}

// scenario is a test in a namespace of its own, with a Recorder.
type scenario struct {
	*testing.T
	namespace string
	recorder  *Recorder
	before    processors
	// afterwards undoes changes to objects outside the namespace, after the judge is done.
	afterwards []func()
	// deregistering: examples/deregister runs.
	deregistering bool
}

// newScenario makes a namespace. When the test ends, the judge checks all its events, and it is deleted.
func newScenario(t *testing.T, labels map[string]string) *scenario {
	t.Helper()
	s := &scenario{T: t, namespace: createNamespace(t, labels), before: used()}
	t.Cleanup(func() {
		deleteNamespace(t, s.namespace)
		for _, undo := range s.afterwards {
			undo()
		}
	})
	s.recorder = record(t, s.namespace)
	t.Cleanup(s.judge)
	s.usable()
	return s
}

// unjudged returns a scenario whose events are not judged: another client patches its pods, or the cluster is overloaded on purpose.
func unjudged(t *testing.T, labels map[string]string) *scenario {
	t.Helper()
	s := &scenario{T: t, namespace: createNamespace(t, labels)}
	t.Cleanup(func() { deleteNamespace(t, s.namespace) })
	s.recorder = record(t, s.namespace)
	t.Cleanup(s.recorder.stop)
	s.usable()
	return s
}

// asShipped sets the default drain.
func asShipped(labels map[string]string) map[string]string {
	if _, says := labels[drainSetting]; says {
		return labels
	}
	return with(labels, drainSetting, "2s")
}

// createNamespace makes a namespace with these labels and settings, with short drains and without surge pods unless they say otherwise:
// most scenarios check that no pod is created, also where no pod may be unavailable.
func createNamespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	for label, value := range map[string]string{surgeSetting: "never", drainSetting: "500ms"} {
		if _, says := labels[label]; !says {
			labels = with(labels, label, value)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-" + nameOf(t) + "-"}}
	for key, value := range labels {
		set(&namespace.ObjectMeta, key, value)
	}
	created, err := clients.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return created.Name
}

// usable waits until pods can be created.
func (s *scenario) usable() {
	s.Helper()
	s.eventually("the namespace's service account", func(ctx context.Context) error {
		_, err := clients.CoreV1().ServiceAccounts(s.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

var infeasible = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf makes the last part of the test's name valid for a namespace.
func nameOf(t *testing.T) string {
	name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
	name = infeasible.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(name[:min(len(name), 40)], "-")
}

func deleteNamespace(t *testing.T, name string) {
	err := clients.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("deleting namespace %s: %v", name, err)
	}
}

// judge replays the events and checks them. After a failure it prints them.
func (s *scenario) judge() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer s.recorder.stop()
	if err := s.recorder.catchUp(ctx); err != nil {
		s.Error(err)
	}
	events := s.recorder.inOrder()
	phases, violations := decided(events, slices.Clone(s.recorder.phases))
	for i := range phases {
		if phases[i].lag > 0 {
			s.Logf("phase %s: the status of a StatefulSet differed from the labels of its pods for %s at most", &phases[i], phases[i].lag)
		}
	}
	for i, violation := range violations {
		if i == 10 {
			s.Errorf("and %d more", len(violations)-i)
			break
		}
		s.Errorf("violation: %s", violation)
	}
	if s.Failed() {
		s.Log(used().since(s.before))
		s.Logf("timeline of %s:\n%s", s.namespace, timeline(events, phases, s.recorder.started))
		s.Logf("events:\n%s", eventsOf(ctx, s.namespace))
		s.Logf("managers:\n%s", logsOf(ctx, s.namespace))
	}
}

// begin starts a phase: rules apply to everything that happens from now on.
func (s *scenario) begin(name string, rules Rules) {
	s.Helper()
	if err := s.recorder.Begin(s.Context(), name, rules); err != nil {
		s.Fatalf("starting phase %q: %v", name, err)
	}
}

// wait waits for a state of the namespace.
func (s *scenario) wait(what string, condition func(world) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	err := s.recorder.catchUp(ctx)
	if err == nil {
		err = s.recorder.until(ctx, condition)
	}
	if err != nil {
		s.Fatalf("waited in vain for %s: %v", what, err)
	}
}

// on returns a condition on one Deployment.
func on(name string, condition func(world, *appsv1.Deployment) error) func(world) error {
	return func(w world) error {
		d := w.deployment(name)
		if d == nil {
			return fmt.Errorf("there is no Deployment %s", name)
		}
		return condition(w, d)
	}
}

// of returns a condition on one workload of any kind.
func of(name string, condition func(workload) error) func(world) error {
	return func(w world) error {
		found, err := w.workload(name)
		if err != nil {
			return err
		}
		return condition(found)
	}
}

// eventually waits for something that the Recorder does not see.
func (s *scenario) eventually(what string, condition func(context.Context) error) {
	s.Helper()
	s.within(patience, what, condition)
}

func (s *scenario) within(atMost time.Duration, what string, condition func(context.Context) error) {
	s.Helper()
	if err := pollFor(s.Context(), atMost, condition); err != nil {
		s.Fatalf("waited in vain for %s: %v", what, err)
	}
}

// poll evaluates the condition four times a second until ctx ends or patience is over. It returns what was last wrong: the end of ctx
// itself says nothing, and may have cut the last attempt short.
func poll(ctx context.Context, condition func(context.Context) error) error {
	return pollFor(ctx, patience, condition)
}

func pollFor(ctx context.Context, atMost time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	tick := time.NewTicker(time.Second / 4)
	defer tick.Stop()
	for wrong := ctx.Err(); ; {
		err := condition(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() == nil || wrong == nil:
			wrong = err
		}
		select {
		case <-ctx.Done():
			return wrong
		case <-tick.C:
		}
	}
}

// kubectl runs the cluster's kubectl. Its standard error is in messages, and in the error.
func kubectl(ctx context.Context, input string, arguments ...string) (output, messages string, err error) {
	command := exec.CommandContext(ctx, filepath.Join(binaries, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, arguments...)...)
	var out, said bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &said
	if err := command.Run(); err != nil {
		return out.String(), said.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, said.String())
	}
	return out.String(), said.String(), nil
}

// kubectl runs kubectl in the namespace, with a manifest as input unless that is empty, and returns its output.
func (s *scenario) kubectl(input string, arguments ...string) string {
	s.Helper()
	output, messages, err := kubectl(s.Context(), input, append([]string{"-n", s.namespace}, arguments...)...)
	if err != nil {
		s.Fatal(err)
	}
	return output + messages
}

// refused runs kubectl, checks that it fails, and returns its message.
func (s *scenario) refused(arguments ...string) string {
	s.Helper()
	output, _, err := kubectl(s.Context(), "", append([]string{"-n", s.namespace}, arguments...)...)
	if err == nil {
		s.Fatalf("kubectl %s was not refused: %s", strings.Join(arguments, " "), output)
	}
	return err.Error()
}

// expectIn checks that the output has all parts.
func (s *scenario) expectIn(said string, parts ...string) {
	s.Helper()
	for _, part := range parts {
		if !strings.Contains(said, part) {
			s.Errorf("%q is missing in:\n%s", part, said)
		}
	}
}

// create creates Deployments, all at once, and waits until they are rolled out.
func (s *scenario) create(deployments ...*appsv1.Deployment) {
	s.Helper()
	for _, d := range deployments {
		s.submit(d)
	}
	for _, d := range deployments {
		s.completes(d.Name)
	}
}

// submit creates the Deployment.
func (s *scenario) submit(d *appsv1.Deployment) {
	s.Helper()
	if _, err := clients.AppsV1().Deployments(s.namespace).Create(s.Context(), d, metav1.CreateOptions{}); err != nil {
		s.Fatalf("creating Deployment %s: %v", d.Name, err)
	}
}

// setImage sets images of containers of a workload: "app=v2".
func (s *scenario) setImage(name string, images ...string) string {
	s.Helper()
	arguments := []string{"set", "image", ref(name)}
	for _, image := range images {
		container, tag, _ := strings.Cut(image, "=")
		arguments = append(arguments, container+"="+appImage(tag))
	}
	return s.kubectl("", arguments...)
}

// tryImage sets the image of container app without kubectl, for many edits side by side.
func (s *scenario) tryImage(ctx context.Context, name, image string) error {
	kind, short, _ := strings.Cut(ref(name), "/")
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, image)
	return clients.AppsV1().RESTClient().Patch(types.StrategicMergePatchType).Namespace(s.namespace).Resource(kind + "s").Name(short).
		Body(patch).Do(ctx).Error()
}

// setEnv makes an edit that no running pod can take.
func (s *scenario) setEnv(name, variable string) string {
	s.Helper()
	return s.kubectl("", "set", "env", ref(name), variable)
}

// patch merges JSON into a workload.
func (s *scenario) patch(name, patch string) string {
	s.Helper()
	return s.kubectl("", "patch", ref(name), "--type=merge", "-p", patch)
}

// rollout runs kubectl rollout.
func (s *scenario) rollout(verb, name string, flags ...string) string {
	s.Helper()
	return s.kubectl("", append([]string{"rollout", verb, ref(name)}, flags...)...)
}

// label sets a label of the namespace; "key-" removes it.
func (s *scenario) label(label string) {
	s.Helper()
	s.kubectl("", "label", "namespace", s.namespace, label, "--overwrite")
}

// annotate sets a setting of the namespace.
func (s *scenario) annotate(setting string) {
	s.Helper()
	s.kubectl("", "annotate", "namespace", s.namespace, setting, "--overwrite")
}

// managed waits until the API server calls the webhooks for edits of the workload.
func (s *scenario) managed(name string) {
	s.Helper()
	s.eventually("webhooks that answer", func(ctx context.Context) error {
		decision, err := s.decision(ctx, name)
		if err == nil && decision == "" {
			return errors.New("a dry run of an edit is not answered")
		}
		return err
	})
}

// unmanaged waits until the API server calls no webhook for edits of the workload.
func (s *scenario) unmanaged(name string) {
	s.Helper()
	s.eventually("webhooks that do not answer", func(ctx context.Context) error {
		decision, err := s.decision(ctx, name)
		if err == nil && decision != "" {
			return errors.New("a dry run of an edit is answered: " + decision)
		}
		return err
	})
}

// decision returns the decision that the webhooks write to a workload in a dry run, which takes out that of the last edit. It is empty if
// they do not answer.
func (s *scenario) decision(ctx context.Context, name string) (string, error) {
	output, _, err := kubectl(ctx, "", "-n", s.namespace, "patch", ref(name), "--dry-run=server", "--type=merge",
		"-p", `{"metadata":{"annotations":{"stayput.dev/decision":null}},"spec":{"template":{"metadata":{"labels":{"probe":"webhooks"}}}}}`,
		"-o", `jsonpath={.metadata.annotations.stayput\.dev/decision}`)
	return output, err
}

// completes waits until the update is complete, and checks that kubectl says so too.
func (s *scenario) completes(name string) {
	s.Helper()
	s.rollsOut(name)
	s.wait(name+" to bear no mark", of(name, func(now workload) error { return now.unmarked() }))
}

// rollsOut is completes without a manager: a mark that is left does no harm, and the next manager removes it.
func (s *scenario) rollsOut(name string) {
	s.Helper()
	s.ends(name)
	s.rollout("status", name, "--timeout=1m")
}

// ends is rollsOut without asking kubectl.
func (s *scenario) ends(name string) {
	s.Helper()
	s.wait(name+" to be rolled out", of(name, func(now workload) error { return now.complete() }))
}

// reaches waits for a state of an update.
func (s *scenario) reaches(name string, state state) {
	s.Helper()
	s.wait(name+" to be "+state.name, at(name, state))
}

// at returns the condition that a workload's update is in this state.
func at(name string, state state) func(world) error { return of(name, state.isNow) }

// met checks that the last edit of the workload's spec came in that state.
func (s *scenario) met(name string, state state) {
	s.Helper()
	s.metWhen(name, state.isNow)
}

// metWhen checks that this condition was true at the last edit of the workload's spec.
func (s *scenario) metWhen(name string, condition func(workload) error) {
	s.Helper()
	then, err := s.recorder.before(name, s.workload(name).GetGeneration()).workload(name)
	if err == nil {
		err = condition(then)
	}
	if err != nil {
		s.Errorf("the last edit of %s came too late or too early: %v", name, err)
	}
}

// state is a state in the middle of an update. Tests reach it with pods that take seconds to become ready (readyAfter), so that it lasts
// longer than the edit that follows.
type state struct {
	name  string
	holds func(podCounts) bool
}

// isNow returns nil if a workload's update is in this state.
func (m state) isNow(now workload) error {
	if counts := now.podCounts(); !m.holds(counts) {
		return fmt.Errorf("not %s: %s", m.name, counts)
	}
	return nil
}

var (
	partly   = state{"partly updated", func(t podCounts) bool { return t.done > 0 && t.untouched > 0 }}
	threeway = state{"partly done, partly mid-way, partly untouched", func(t podCounts) bool {
		return t.done > 0 && t.midway > 0 && t.untouched > 0
	}}
)

// deployment returns the Deployment as it is now.
func (s *scenario) deployment(name string) *appsv1.Deployment {
	s.Helper()
	d, err := clients.AppsV1().Deployments(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// workload returns a workload of any kind, with its pods, as it is now.
func (s *scenario) workload(name string) workload {
	s.Helper()
	var now workload
	s.wait(name, of(name, func(found workload) error {
		now = found
		return nil
	}))
	return now
}

// pods returns the live pods of a complete workload.
func (s *scenario) pods(name string) map[types.UID]*corev1.Pod {
	s.Helper()
	pods := map[types.UID]*corev1.Pod{}
	for _, pod := range s.workload(name).pods {
		pods[pod.UID] = pod
	}
	return pods
}

// restarts is how often each container restarts. Containers that it does not name do not restart.
type restarts map[string]Count

// inPlace makes an edit and checks that no pod is replaced.
func (s *scenario) inPlace(name string, expected restarts, edit func()) {
	s.Helper()
	s.inPlaceUnder(inPlace, name, expected, edit)
}

func (s *scenario) inPlaceUnder(rules Rules, name string, expected restarts, edit func()) {
	s.Helper()
	before := s.pods(name)
	s.begin("in place", rules)
	edit()
	s.completes(name)
	s.kept(name, before, expected)
}

// recreated makes an edit and checks that all pods are replaced.
func (s *scenario) recreated(name string, edit func()) {
	s.Helper()
	s.recreatedUnder(recreated, name, edit)
}

func (s *scenario) recreatedUnder(rules Rules, name string, edit func()) {
	s.Helper()
	before := s.pods(name)
	s.begin("native", rules)
	edit()
	s.completes(name)
	s.replaced(name, before)
}

// replaced checks that none of the pods of before is left.
func (s *scenario) replaced(name string, before map[types.UID]*corev1.Pod) {
	s.Helper()
	for uid, pod := range s.pods(name) {
		if before[uid] != nil {
			s.Errorf("pod %s is still there after a native rollout", pod.Name)
		}
	}
}

// kept checks that the pods are those of before, on their nodes and with their addresses, with these restarts.
func (s *scenario) kept(name string, before map[types.UID]*corev1.Pod, expected restarts) {
	s.Helper()
	after := s.pods(name)
	if len(after) != len(before) {
		s.Errorf("%s has %d pods instead of %d", name, len(after), len(before))
	}
	for uid, pod := range after {
		was := before[uid]
		if was == nil {
			s.Errorf("pod %s is new", pod.Name)
			continue
		}
		if pod.Status.PodIP != was.Status.PodIP || pod.Spec.NodeName != was.Spec.NodeName {
			s.Errorf("pod %s moved from %s on %s to %s on %s", pod.Name,
				was.Status.PodIP, was.Spec.NodeName, pod.Status.PodIP, pod.Spec.NodeName)
		}
		s.restarted(was, pod, expected)
	}
}

func (s *scenario) restarted(was, is *corev1.Pod, expected restarts) {
	s.Helper()
	before := restartsOf(was)
	for container, count := range restartsOf(is) {
		times, allowed := int(count-before[container]), expected[container]
		if times < allowed.min || times > allowed.max {
			s.Errorf("container %s of pod %s restarted %d times instead of %s", container, is.Name, times, allowed)
		}
	}
}

// reported waits for an event of this reason on an object of this kind.
func (s *scenario) reported(kind, reason string) {
	s.Helper()
	s.eventually("event "+reason+" on a "+kind, func(ctx context.Context) error {
		found, err := clients.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "reason=" + reason + ",involvedObject.kind=" + kind,
		})
		if err == nil && len(found.Items) == 0 {
			return errors.New("there is none")
		}
		return err
	})
}

// history checks the revisions of `kubectl rollout history`.
func (s *scenario) history(name string, revisions ...string) {
	s.Helper()
	var listed []string
	for line := range strings.Lines(s.rollout("history", name)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0][0] >= '0' && fields[0][0] <= '9' {
			listed = append(listed, fields[0])
		}
	}
	if !slices.Equal(listed, revisions) {
		s.Errorf("rollout history of %s lists revisions %v instead of %v", name, listed, revisions)
	}
}

func appImage(tag string) string { return registry + "app:" + tag }

// option changes a Deployment before it is created.
type option func(*appsv1.Deployment)

// web returns a Deployment of the test application at v1, with the default strategy and defaults otherwise.
func web(replicas int32, options ...option) *appsv1.Deployment {
	labels := map[string]string{"app": "web", "helm.sh/chart": "web-1.0.0"}
	grace := int64(5)
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{container("app", 8080)},
					TerminationGracePeriodSeconds: &grace,
					AutomountServiceAccountToken:  new(bool),
				},
			},
		},
	}
	for _, set := range options {
		set(d)
	}
	return d
}

func container(name string, port int) corev1.Container {
	return corev1.Container{
		Name:  name,
		Image: appImage("v1"),
		Env:   []corev1.EnvVar{{Name: "PORT", Value: fmt.Sprint(port)}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt(port)}},
			PeriodSeconds: 1,
			// An application on a machine that stalls for a second has not failed. The judge would count its pod as unavailable.
			TimeoutSeconds: 10,
		},
	}
}

// named gives the Deployment, its pods and its selector another name.
func named(name string) option {
	return func(d *appsv1.Deployment) {
		d.Name, d.Labels["app"] = name, name
		d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"] = name, name
	}
}

// withSide adds a second container.
func withSide(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, container("side", 8081))
}

// slow makes every pod take seconds to become ready, so that states in the middle of an update last.
var slow = readyAfter("app", "6s")

// readyAfter makes a container of every pod, possibly a sidecar, take so long to become ready.
func readyAfter(container, delay string) option {
	return func(d *appsv1.Deployment) {
		spec := &d.Spec.Template.Spec
		for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
			for i := range list {
				if list[i].Name == container {
					list[i].Env = append(list[i].Env, corev1.EnvVar{Name: "READY_DELAY", Value: delay})
				}
			}
		}
	}
}

func image(tag string) option {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = appImage(tag) }
}

// setting sets a label or an annotation of the Deployment.
func setting(key, value string) option {
	return func(d *appsv1.Deployment) { set(&d.ObjectMeta, key, value) }
}

// set sets a setting of Stayput on an object. What is no setting is a label.
func set(on *metav1.ObjectMeta, key, value string) {
	if isLabel(key) {
		metav1.SetMetaDataLabel(on, key, value)
	} else {
		metav1.SetMetaDataAnnotation(on, key, value)
	}
}

func isLabel(key string) bool {
	return !strings.HasPrefix(key, "stayput.dev/") || key == updateLabel || key == kindsLabel
}

// rolling sets maxUnavailable and maxSurge: "1", "50%".
func rolling(maxUnavailable, maxSurge string) option {
	unavailable, surge := intstr.Parse(maxUnavailable), intstr.Parse(maxSurge)
	return func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge},
		}
	}
}

func recreating(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func minReadySeconds(seconds int32) option {
	return func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = seconds }
}

func progressDeadline(seconds int32) option {
	return func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = &seconds }
}

// manifest returns the object as a file for kubectl.
func manifest(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
