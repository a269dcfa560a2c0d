package observe

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// template returns a template with one container, which has that image and an environment of that size.
func template(t *testing.T, image string, size int) apps.Template {
	t.Helper()
	parsed, err := apps.ParseTemplate([]byte(fmt.Sprintf(
		`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":%q,"env":[{"name":"A","value":%q}]}]}}`,
		image, strings.Repeat("x", size))))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// shopOf returns the labelled namespace shop and a Deployment there with that many ReplicaSets. Their templates have
// that size. Each ReplicaSet has one pod.
func shopOf(t *testing.T, count, size int) []client.Object {
	t.Helper()
	web := &apps.Deployment{ObjectMeta: meta("web", "d")}
	web.Spec.Selector, web.Spec.Template = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, template(t, "app:0", 0)
	labels := map[string]string{inplace.LabelUpdate: "in-place"}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels}}, web}
	for i := range count {
		one := int32(1)
		set := &apps.ReplicaSet{ObjectMeta: meta(
			fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("r%d", i)), controlledBy("Deployment", "web", "d"))}
		set.Spec.Replicas, set.Spec.Template = &one, template(t, fmt.Sprintf("app:%d", i), size)
		pod := &corev1.Pod{ObjectMeta: meta(set.Name+"-a", "p"+set.UID, controlledBy("ReplicaSet", set.Name, set.UID))}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: fmt.Sprintf("app:%d", i), Args: []string{strings.Repeat("x", size)}}}
		objects = append(objects, set, pod)
	}
	return objects
}

// server is an API server that counts the reads of single objects, and lists in pages.
type server struct {
	client.WithWatch
	gets    int
	largest int
}

func serve(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	s := &server{}
	s.WithWatch = builder(t, objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			s.gets++
			return c.Get(ctx, key, into, options...)
		},
		List: s.list,
	}).Build()
	return s
}

func (s *server) list(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if err := c.List(ctx, into, options...); err != nil {
		return err
	}
	switch list := into.(type) {
	case *apps.ReplicaSetList:
		list.Items, list.Continue = pageOfItems(list.Items, asked)
		s.largest = max(s.largest, len(list.Items))
	case *corev1.PodList:
		list.Items, list.Continue = pageOfItems(list.Items, asked)
	}
	return nil
}

func pageOfItems[T any](items []T, asked *client.ListOptions) ([]T, string) {
	from, _ := strconv.Atoi(asked.Continue)
	to := from + int(asked.Limit)
	if asked.Limit == 0 || to >= len(items) {
		return items[from:], ""
	}
	return items[from:to], strconv.Itoa(to)
}

// keepOf returns a CacheForm that knows the namespaces among the objects.
func keepOf(t *testing.T, objects ...client.Object) *CacheForm {
	t.Helper()
	keep, err := NewCacheForm(t.Context(), Reader{Reader: builder(t, objects...).Build()})
	if err != nil {
		t.Fatal(err)
	}
	return keep
}

// kept returns the object as it is in the cache.
func kept(t *testing.T, keep *CacheForm, object client.Object) client.Object {
	t.Helper()
	transform := keep.App
	switch object.(type) {
	case *corev1.Pod:
		transform = keep.Pod
	case *corev1.Namespace, *corev1.Node:
		return object
	}
	cut, err := transform(object.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	return cut.(client.Object)
}

// cacheOf returns a Reader of a cache of the server's objects.
func cacheOf(t *testing.T, s *server, keep *CacheForm, objects ...client.Object) Reader {
	t.Helper()
	var all []client.Object
	for _, object := range objects {
		all = append(all, kept(t, keep, object))
	}
	cached := cacheHas(t, all...)
	keep.live, cached.Form = s, keep
	return cached
}

func rolloutOf(t *testing.T, r Reader) *deployments.Rollout {
	t.Helper()
	rollout, err := r.Rollout(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return rollout
}

// TestOutlinesAreReadWhole has a namespace that got its label after its objects were cached, and large objects in a
// labelled namespace.
func TestOutlinesAreReadWhole(t *testing.T) {
	for name, test := range map[string]struct {
		count, size int
		known       bool
		gets        int
	}{
		"labelled":             {3, 100, true, 0},
		"labelled later":       {3, 100, false, 1 + 3 + 3},
		"labelled later, many": {60, 100, false, 1}, // ReplicaSets and pods are listed
		"large":                {3, large, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			objects := shopOf(t, test.count, test.size)
			s, keep := serve(t, objects...), keepOf(t)
			if test.known {
				keep = keepOf(t, objects...)
			}
			cache := cacheOf(t, s, keep, objects...)
			for range 2 {
				rollout := rolloutOf(t, cache)
				if len(rollout.ReplicaSets) != test.count || len(rollout.Seen.Pods) != test.count {
					t.Errorf("read %d ReplicaSets and %d pods", len(rollout.ReplicaSets), len(rollout.Seen.Pods))
				}
				for _, pod := range rollout.Seen.Pods {
					if len(pod.Spec.Containers) != 1 || pod.Labels["app"] != "web" {
						t.Errorf("%s is not whole", pod.Name)
					}
				}
				if rollout.Seen.Unread != "" {
					t.Errorf("unread: %s", rollout.Seen.Unread)
				}
				for _, set := range rollout.ReplicaSets {
					containers := set.Spec.Template.Typed().Spec.Containers
					if len(containers) != 1 || len(containers[0].Env[0].Value) != test.size || set.Labels["app"] != "web" {
						t.Errorf("%s is not whole", set.Name)
					}
				}
			}
			if s.gets != test.gets {
				t.Errorf("%d reads for two rollouts, want %d", s.gets, test.gets)
			}
		})
	}
}

// TestPartitionOfAnOutline checks that the workload's own label for the partition is read if the cache has an outline
// of the workload.
func TestPartitionOfAnOutline(t *testing.T) {
	objects := shopOf(t, 1, 100)
	objects[1].SetAnnotations(map[string]string{inplace.AnnotationPartition: "30%"})
	for name, keep := range map[string]*CacheForm{"labelled": keepOf(t, objects...), "labelled later": keepOf(t)} {
		if rollout := rolloutOf(t, cacheOf(t, serve(t, objects...), keep, objects...)); rollout.Seen.Settings.Partition.Value != "30%" {
			t.Errorf("%s: the partition is %q", name, rollout.Seen.Settings.Partition.Value)
		}
	}
}

// TestRulesOfAnOutline checks that the workload's own annotation with rules is read if the cache has an outline of the
// workload.
func TestRulesOfAnOutline(t *testing.T) {
	objects := shopOf(t, 1, 100)
	objects[1].SetAnnotations(map[string]string{inplace.AnnotationInPlaceAnnotations: "note"})
	for name, keep := range map[string]*CacheForm{"labelled": keepOf(t, objects...), "labelled later": keepOf(t)} {
		rollout := rolloutOf(t, cacheOf(t, serve(t, objects...), keep, objects...))
		if !rollout.Seen.Rules.Allows("note") {
			t.Errorf("%s: the rules are %+v", name, rollout.Seen.Rules)
		}
	}
}

func TestWhatIsReadWholeIsAsNewAsTheOutline(t *testing.T) {
	objects := shopOf(t, 1, large)
	s, keep := serve(t, objects...), keepOf(t, objects...)
	cache := cacheOf(t, s, keep, objects...)
	rolloutOf(t, cache)
	set := &apps.ReplicaSet{}
	if err := s.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-0"}, set); err != nil {
		t.Fatal(err)
	}
	set.Labels[inplace.LabelUpdating] = "1"
	if err := s.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	newer := cacheOf(t, s, keep, append(shopOf(t, 0, 0), set)...)
	if rollout := rolloutOf(t, newer); !revisions.Updating(rollout.ReplicaSets[0]) {
		t.Error("an older version is remembered")
	}
	if err := s.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	keep.forget(set)
	expectNames(t, rolloutOf(t, newer).ReplicaSets)
}

// TestTooMuchIsNotRead checks that neither through a cache nor from the API server a manager reads more of one workload
// than it can keep.
func TestTooMuchIsNotRead(t *testing.T) {
	const count, each = 48, 200 << 10
	objects := shopOf(t, count, each)
	s, keep := serve(t, objects...), keepOf(t, objects...)
	for name, reader := range map[string]Reader{"live": {Reader: s}, "indexed": cacheOf(t, s, keep, objects...)} {
		s.gets, s.largest = 0, 0
		rollout := rolloutOf(t, reader.WithoutPods())
		size := 0
		for _, set := range rollout.ReplicaSets {
			size += sizeOf(set)
		}
		// The cache has outlines of what is too much. A list at the API server stops before it.
		all := len(rollout.ReplicaSets) == count || !reader.Stores.present() && len(rollout.ReplicaSets) <= mostRead/each+1
		if !all || size > mostRead+count*(2<<10) || s.largest > revisionsAtATime {
			t.Errorf("%s: %d ReplicaSets of %d bytes were read, %d at a time", name, len(rollout.ReplicaSets), size, s.largest)
		}
		if decision := rollout.Decision(); decision.Held || !slices.Contains(decision.Reasons.Codes(), inplace.CodeTooLarge) {
			t.Errorf("%s: %+v", name, decision)
		}
		if reader.Stores.present() && s.gets > 0 {
			t.Errorf("%d large objects were read", s.gets)
		}
	}
}

func TestLargePodsAreReadWhole(t *testing.T) {
	objects := shopOf(t, 1, 0)
	pod := objects[len(objects)-1].(*corev1.Pod)
	pod.Spec.Containers[0].Image = strings.Repeat("x", 2*large)
	s, keep := serve(t, objects...), keepOf(t, objects...)
	if form := kept(t, keep, pod).(*corev1.Pod); len(form.Spec.Containers) > 0 {
		t.Errorf("its outline is %+v", form)
	}
	rollout := rolloutOf(t, cacheOf(t, s, keep, objects...))
	if len(rollout.Seen.Pods) != 1 || len(rollout.Seen.Pods[0].Spec.Containers) != 1 {
		t.Errorf("read %+v", rollout.Seen.Pods)
	}
}

// TestOutlinesStayOutlines: client-go transforms twice what it lists as a stream.
func TestOutlinesStayOutlines(t *testing.T) {
	objects := shopOf(t, 1, large)
	crowd := objects[3].(*corev1.Pod)
	crowd.Spec.Containers = make([]corev1.Container, apps.MostContainers+1)
	keep := keepOf(t, objects...)
	for _, object := range objects[2:] {
		once := kept(t, keep, object)
		size, isOutline := outlineSize(once)
		if again, _ := outlineSize(kept(t, keep, once)); !isOutline || again != size {
			t.Errorf("the outline of a %T of %d bytes becomes one of %d", object, size, again)
		}
	}
}

// TestPodsOfOtherNamespacesAreOutlines: but those on which Stayput has left something to do are whole.
func TestPodsOfOtherNamespacesAreOutlines(t *testing.T) {
	keep := keepOf(t)
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		whole  bool
	}{
		"untouched": {func(*corev1.Pod) {}, false},
		"out of service": {func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{readiness.TakenOutUntil(pod, time.Now(), time.Now())}
		}, true},
		"patched": {func(pod *corev1.Pod) { pod.Annotations = map[string]string{inplace.AnnotationMove: "{}"} }, true},
		"to answer": {func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestarted: podstate.AnswersWaiting}
		}, true},
		"pulls images":        {func(pod *corev1.Pod) { pod.Labels[inplace.LabelPrePull] = "d" }, true},
		"in shop, whole then": {func(*corev1.Pod) { keep.note(shopOf(t, 0, 0)[0].(*corev1.Namespace)) }, true},
	} {
		pod := shopOf(t, 1, 0)[3].(*corev1.Pod)
		if !strings.HasPrefix(name, "in shop") {
			pod.Namespace = "other"
		}
		test.change(pod)
		if form := kept(t, keep, pod).(*corev1.Pod); len(form.Spec.Containers) > 0 != test.whole {
			t.Errorf("%s: whole: %t", name, !test.whole)
		}
	}
}

// TestManySmallPodsAreNotTooLarge has more pods in a namespace that has just got its label than may be read of large ones.
func TestManySmallPodsAreNotTooLarge(t *testing.T) {
	objects := shopOf(t, 1, 0)
	pod := objects[3].(*corev1.Pod)
	pod.Finalizers = []string{strings.Repeat("x", 50<<10)}
	for i := range 2 * mostRead / (50 << 10) {
		another := pod.DeepCopy()
		another.Name, another.UID = fmt.Sprint("web-", i), types.UID(fmt.Sprint("u", i))
		objects = append(objects, another)
	}
	s, keep := serve(t, objects...), keepOf(t)
	cache := cacheOf(t, s, keep, objects...)
	for range 2 {
		if rollout := rolloutOf(t, cache); rollout.Seen.Unread != "" || len(rollout.Seen.Pods) != len(objects)-3 || s.gets > 3 {
			t.Errorf("%d pods, unread is %q, %d reads", len(rollout.Seen.Pods), rollout.Seen.Unread, s.gets)
		}
	}
	keep.all = mostOfAll // no room to remember so much
	keep.kept = map[string]*share{}
	if rollout := rolloutOf(t, cache); rollout.Seen.Unread == "" {
		t.Error("pods are read for which there is no room")
	}
}

func TestKeepFollowsNamespaces(t *testing.T) {
	keep := keepOf(t)
	for _, test := range []struct {
		label string
		keeps bool
	}{{"", false}, {"in-place", true}, {"in-place-only", true}, {"nonsense", false}} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inplace.LabelUpdate: test.label}}}
		if _, err := keep.Namespace(namespace); err != nil {
			t.Fatal(err)
		}
		_, isOutline := outlineSize(kept(t, keep, shopOf(t, 1, 0)[2]))
		if isOutline == test.keeps {
			t.Errorf("with label %q a ReplicaSet is an outline: %t", test.label, isOutline)
		}
	}
	keep.excluded = []string{"kube-system"}
	labels := map[string]string{inplace.LabelUpdate: "in-place"}
	keep.note(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", Labels: labels}})
	if keep.manages("kube-system") {
		t.Error("an excluded namespace is managed")
	}
}

// TestNoUserCanMakeAnOutline checks that only an object which CacheForm has cut is an outline, even if a user sets the
// annotation of outlines.
func TestNoUserCanMakeAnOutline(t *testing.T) {
	objects := shopOf(t, 1, 0)
	for _, object := range objects {
		object.SetAnnotations(map[string]string{"stayput.dev/outline": "9999999999"})
	}
	s, keep := serve(t, objects...), keepOf(t, objects...)
	for name, reader := range map[string]Reader{"live": {Reader: s}, "indexed": cacheOf(t, s, keep, objects...)} {
		s.gets = 0
		if rollout := rolloutOf(t, reader); rollout.Seen.Unread != "" || len(rollout.ReplicaSets) != 1 || reader.Stores.present() && s.gets > 0 {
			t.Errorf("%s: %q, %d reads", name, rollout.Seen.Unread, s.gets)
		}
	}
}

// TestAllTextOfRevisionsCounts has ReplicaSets none of which is large, but which are too large together or too many.
func TestAllTextOfRevisionsCounts(t *testing.T) {
	for name, test := range map[string]struct {
		count, size int
		says        string
	}{
		"as much as allowed": {mostRead/(60<<10) - 5, 60 << 10, ""},
		"more text":          {mostRead / (60 << 10), 60 << 10, "too large to be read"},
		"as many as allowed": {mostRevisions, 0, ""},
		"one more":           {mostRevisions + 1, 0, "more than 250 revisions"},
	} {
		objects := shopOf(t, test.count, test.size)
		s, keep := serve(t, objects...), keepOf(t, objects...)
		for kind, reader := range map[string]Reader{"live": {Reader: s}, "indexed": cacheOf(t, s, keep, objects...)} {
			rollout := rolloutOf(t, reader.WithoutPods())
			if !strings.Contains(rollout.Seen.Unread, test.says) || (rollout.Seen.Unread == "") != (test.says == "") {
				t.Errorf("%s, %s: unread is %q", name, kind, rollout.Seen.Unread)
			}
			if decision := rollout.Decision(); test.says != "" && (decision.Held || !strings.Contains(decision.Reasons.String(), test.says)) {
				t.Errorf("%s, %s: %+v", name, kind, decision)
			}
		}
	}
}

// TestCrowdedPodsAreNotRead has a pod with more containers than a pod may have, although its template has only one.
func TestCrowdedPodsAreNotRead(t *testing.T) {
	objects := shopOf(t, 2, 0)
	crowd := objects[len(objects)-1].(*corev1.Pod)
	for i := range 12_000 {
		crowd.Spec.Containers = append(crowd.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i)})
	}
	s, keep := serve(t, objects...), keepOf(t, objects...)
	for name, reader := range map[string]Reader{"live": {Reader: s}, "indexed": cacheOf(t, s, keep, objects...)} {
		s.gets = 0
		rollout := rolloutOf(t, reader)
		if want := "a pod has more than 100 containers"; !strings.Contains(rollout.Seen.Unread, want) {
			t.Errorf("%s: unread is %q, want %q", name, rollout.Seen.Unread, want)
		}
		for _, pod := range rollout.Seen.Pods {
			if len(pod.Spec.Containers) > apps.MostContainers {
				t.Errorf("%s: plans look at %d containers", name, len(pod.Spec.Containers))
			}
		}
		if reader.Stores.present() && s.gets > 0 {
			t.Errorf("%d objects were read", s.gets)
		}
	}
}

// TestNamespaceIsKeptWithinItsShare checks that objects of one namespace are kept as outlines once its share of the
// memory is used.
func TestNamespaceIsKeptWithinItsShare(t *testing.T) {
	objects := shopOf(t, 0, 0)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}
	keep, text := keepOf(t, append(objects, other)...), template(t, "app:1", 60<<10)
	isWhole := func(namespace string, i int) bool {
		set := &apps.ReplicaSet{ObjectMeta: meta(fmt.Sprint(i), types.UID(fmt.Sprint(namespace, i)))}
		set.Namespace, set.Spec.Template = namespace, text
		_, isOutline := outlineSize(kept(t, keep, set))
		return !isOutline
	}
	const fit = mostKept / (63 << 10)
	whole := 0
	for i := range 2 * fit {
		if isWhole("shop", i) {
			whole++
		}
	}
	if whole < fit || whole > mostKept/(60<<10) {
		t.Errorf("%d ReplicaSets are kept whole", whole)
	}
	for range 2 {
		if !isWhole("shop", 0) {
			t.Error("another version of a ReplicaSet that is kept is not kept")
		}
	}
	if isWhole("shop", 2*fit) {
		t.Error("more is kept than the share")
	}
	if !isWhole("other", 0) {
		t.Error("another namespace has no share")
	}
	gone := &apps.ReplicaSet{ObjectMeta: meta("0", "shop0")}
	keep.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: gone})
	if !isWhole("shop", 2*fit) {
		t.Error("a deleted object still counts")
	}
}

// TestAllNamespacesAreKeptWithinOneSum fills one namespace after the other. Namespaces without the label get nothing of the memory.
func TestAllNamespacesAreKeptWithinOneSum(t *testing.T) {
	labelled := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}
	}
	keep := keepOf(t, labelled("a"), labelled("b"), labelled("c"), labelled("d"))
	long := strings.Repeat("x", 50<<10)
	fill := func(namespace string) (size int) {
		for i := range mostKept / len(long) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(namespace, i))}}
			pod.Finalizers = []string{long}
			if form := kept(t, keep, pod); len(form.GetFinalizers()) > 0 {
				size += sizeOf(form)
			}
		}
		return size
	}
	if unlabelled := fill("x"); unlabelled > 0 {
		t.Errorf("%d MiB of a namespace without the label are kept", unlabelled>>20)
	}
	a := fill("a")
	all := a + fill("b") + fill("c") + fill("d")
	if a > mostKept || a < mostKept-large || all > mostOfAll || all < mostOfAll-4*large {
		t.Errorf("%d MiB of a labelled namespace are kept, and %d of four", a>>20, all>>20)
	}
}

// TestSizesAreThoseInMemory has a pod that takes little to send and much to keep.
func TestSizesAreThoseInMemory(t *testing.T) {
	pods := make([]*corev1.Pod, 100)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range pods {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: make([]corev1.EnvVar, 1000)}}}}
		pod.Labels = map[string]string{"app": "web"}
		pod.Spec.Tolerations, pod.Status.Conditions = make([]corev1.Toleration, 100), make([]corev1.PodCondition, 100)
		pods[i] = pod
	}
	runtime.ReadMemStats(&after)
	takes := int(after.TotalAlloc-before.TotalAlloc) / len(pods)
	if size := sizeOf(pods[0]); size < takes*2/3 || size > takes*3/2 {
		t.Errorf("a pod that takes %d bytes of memory counts as %d; it is sent as %d", takes, size, pods[0].Size())
	}
}

// TestPagesOfLargePodsAreShort: pods of a namespace with larger ones are listed fewer at a time.
func TestPagesOfLargePodsAreShort(t *testing.T) {
	keep := keepOf(t)
	for size, want := range map[int]int64{0: 100, 128 << 10: 50, 1400 << 10: 4} {
		namespace := fmt.Sprint("with-", size)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-1", UID: types.UID(namespace)}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Args: []string{strings.Repeat("x", size)}}}
		kept(t, keep, pod)
		if most := (Reader{Form: keep}).pageOf(&corev1.PodList{}, namespace); most > want || most < want-1 {
			t.Errorf("with a pod of %d KiB, %d pods are listed at a time", size>>10, most)
		}
	}
}
