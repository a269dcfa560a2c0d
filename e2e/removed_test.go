//go:build e2e && removal

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func init() { precondition = func(context.Context) error { return nil } }

// TestRemoved deletes all objects of Stayput in random order in the middle of updates, $TIMES times. No hook runs, as when a GitOps tool
// prunes them. Nothing of Stayput has to act afterwards: kubelets put pods back into service, and the native controllers end the rollouts.
// Each time begins with an installation, and the last one is followed by one. $SEED repeats a test.
func TestRemoved(t *testing.T) {
	seed, times := numberOf(t, "SEED", uint64(time.Now().Unix())), numberOf(t, "TIMES", 5)
	t.Cleanup(func() { installBuilt(t) })
	for i := range times {
		if !t.Run(fmt.Sprintf("seed %d", seed+i), func(t *testing.T) { removedAtRandom(t, seed+i) }) {
			t.FailNow()
		}
	}
}

func installBuilt(t *testing.T) {
	t.Helper()
	image := builtImage(t)
	if err := buildIn(repository, "install", "IMAGE="+image, "BIN="+binaries); err != nil {
		t.Fatal(err)
	}
}

// removedAtRandom installs Stayput, begins four updates, and removes Stayput after a random time. Pods drain, stop and start then.
func removedAtRandom(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	installBuilt(t)
	s := &bereft{T: t, namespace: createNamespace(t, with(stateful, drainSetting, "2s")), installed: installedObjects(t), client: newClient(t)}
	t.Cleanup(func() { deleteNamespace(t, s.namespace) })
	s.create()
	s.kubectl("set", "image", ref("web"), ref(agents), members, caches, "app="+appImage("v2"))
	time.Sleep(time.Duration(random.Int64N(int64(9 * time.Second))))
	began := time.Now()
	s.follow()
	s.remove(random)
	s.eventually("every pod to run v2 and to be Ready", s.served)
	s.eventually("nothing of Stayput to be left", s.cleared)
	for _, workload := range []string{ref("web"), ref(agents), members, caches} {
		s.kubectl("rollout", "status", workload, "--timeout=10s")
	}
	t.Logf("the rollouts ended and all was gone after %s", time.Since(began).Round(time.Second))
}

// follow prints the managers' logs if the test fails. The managers themselves are gone then.
func (s *bereft) follow() {
	s.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(s.Context(), managers)
	if err != nil {
		s.Fatal(err)
	}
	for _, pod := range pods.Items {
		said := make(chan string, 1)
		ctx, end := context.WithCancel(context.Background())
		go func() {
			log, _, err := kubectl(ctx, "", "-n", ownNamespace, "logs", "--follow", "--tail=50", pod.Name)
			said <- fmt.Sprintf("%s\n%v", log, err)
		}()
		s.Cleanup(func() {
			end()
			if s.Failed() {
				s.Logf("%s said:\n%s", pod.Name, <-said)
			}
		})
	}
}

// bereft is a namespace with a Deployment, a DaemonSet, and a StatefulSet of each pod management policy, in whose cluster Stayput is
// removed.
type bereft struct {
	*testing.T
	namespace string
	installed []*unstructured.Unstructured
	client    client.Client
}

func (s *bereft) kubectl(arguments ...string) {
	s.Helper()
	if _, _, err := kubectl(s.Context(), "", append([]string{"-n", s.namespace}, arguments...)...); err != nil {
		s.Fatal(err)
	}
}

// create creates the workloads with their Services. Every pod takes seconds to stop and to become ready.
func (s *bereft) create() {
	s.Helper()
	lasting := func(d *appsv1.Deployment) {
		stopsAfter("2s", 10)(d)
		readyAfter("app", "2s")(d)
	}
	objects := []client.Object{web(4, rolling("50%", "25%"), lasting), agent(templated(lasting), budget("2", "0")),
		db(2, ofTemplate(lasting)), db(2, policies["Parallel"], ofTemplate(lasting), ofTemplate(named("cache")))}
	for _, object := range slices.Clone(objects) {
		objects = append(objects, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: object.GetName()}, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": object.GetName()}, Ports: []corev1.ServicePort{{Port: 80}}}})
	}
	for _, object := range objects {
		object.SetNamespace(s.namespace)
		if err := s.client.Create(s.Context(), object); err != nil {
			s.Fatal(err)
		}
	}
	s.eventually("every pod to run v1", func(ctx context.Context) error { return s.each(ctx, "v1") })
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent, config.QPS = user, -1
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installedObjects returns what make install installs.
func installedObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, "dist", "stayput.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// remove deletes the objects in random order, with random pauses. Tools delete in the background or in the foreground.
func (s *bereft) remove(random *rand.Rand) {
	s.Helper()
	policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}[random.IntN(2)]
	pause := []time.Duration{0, 100 * time.Millisecond, time.Second}[random.IntN(3)]
	order := slices.Clone(s.installed)
	random.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	var names []string
	for _, object := range order {
		names = append(names, nameOfObject(object))
	}
	s.Logf("%s, pauses up to %s: %s", policy, pause, strings.Join(names, ", "))
	for _, object := range order {
		s.delete(object, policy)
		time.Sleep(time.Duration(random.Int64N(int64(pause) + 1)))
	}
}

func (s *bereft) delete(object client.Object, policy metav1.DeletionPropagation) {
	s.Helper()
	if err := s.client.Delete(s.Context(), object, client.PropagationPolicy(policy)); client.IgnoreNotFound(err) != nil {
		s.Fatalf("deleting %s: %v", nameOfObject(object), err)
	}
}

func nameOfObject(object client.Object) string {
	return object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
}

// removalPatience is longer than patience: the Deployment controller may wait for 164 s after its last refused write.
const removalPatience = 2 * patience

// eventually waits. If that is in vain, it says what the namespace looks like.
func (s *bereft) eventually(what string, condition func(context.Context) error) {
	s.Helper()
	err := pollFor(s.Context(), removalPatience, condition)
	if err == nil {
		return
	}
	state, _, _ := kubectl(context.Background(), "", "-n", s.namespace, "get",
		"pods,replicasets,deployments,daemonsets,statefulsets", "-o", "wide")
	events, _, _ := kubectl(context.Background(), "", "-n", s.namespace, "get", "events", "--sort-by=.metadata.creationTimestamp", "-o",
		"custom-columns=TIME:.metadata.creationTimestamp,BY:.source.component,OF:.involvedObject.name,REASON:.reason,MESSAGE:.message")
	s.Fatalf("waited in vain for %s: %v\n%s\n%s", what, err, state, events)
}

// served returns nil if all rollouts are complete, as their status says and as their pods are.
func (s *bereft) served(ctx context.Context) error {
	d, err := clients.AppsV1().Deployments(s.namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if done, why := rolledOut(d); !done {
		return fmt.Errorf("web: %s", why)
	}
	ds, err := clients.AppsV1().DaemonSets(s.namespace).Get(ctx, "agent", metav1.GetOptions{})
	if err != nil {
		return err
	}
	wanted := ds.Status.DesiredNumberScheduled
	if ds.Status.ObservedGeneration < ds.Generation || ds.Status.UpdatedNumberScheduled < wanted || ds.Status.NumberAvailable < wanted {
		return fmt.Errorf("agent: %+v", ds.Status)
	}
	all, err := clients.AppsV1().StatefulSets(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range all.Items {
		if done, why := membersRolledOut(&all.Items[i]); !done {
			return fmt.Errorf("%s: %s", all.Items[i].Name, why)
		}
	}
	return s.each(ctx, "v2")
}

// each checks the number of pods, and that each of them has this version and is Ready. Pre-pull pods may be left.
func (s *bereft) each(ctx context.Context, tag string) error {
	ds, err := clients.AppsV1().DaemonSets(s.namespace).Get(ctx, "agent", metav1.GetOptions{})
	if err != nil {
		return err
	}
	pods, err := clients.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pulls(&pod) })
	const others = 4 + 2 + 2
	if want := others + int(ds.Status.DesiredNumberScheduled); len(pods.Items) != want || want == others {
		return fmt.Errorf("there are %d pods instead of %d", len(pods.Items), want)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case pod.DeletionTimestamp != nil || !ready(pod):
			return fmt.Errorf("pod %s is being deleted or is not Ready: %+v", pod.Name, pod.Status.Conditions)
		case pod.Spec.Containers[0].Image != appImage(tag):
			return fmt.Errorf("pod %s has %s", pod.Name, pod.Spec.Containers[0].Image)
		}
	}
	return nil
}

// cleared returns nil if all objects of Stayput are gone.
func (s *bereft) cleared(ctx context.Context) error {
	var left []error
	for _, object := range s.installed {
		found := object.DeepCopy()
		switch err := s.client.Get(ctx, client.ObjectKeyFromObject(object), found); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		default:
			left = append(left, fmt.Errorf("%s is there", nameOfObject(object)))
		}
	}
	return errors.Join(left...)
}
