package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/features"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

func init() { statefulRound = nativeRound }

// nativeStatefulSets is the StatefulSet controller of an ensemble. Its caches have what the model would have been given.
type nativeStatefulSets struct {
	*process
	e     *ensemble
	begun time.Time
	sets  *watch[*apps.StatefulSet]
	revs  *watch[*apps.ControllerRevision]
	pods  *watch[*corev1.Pod]
}

var ensembles = map[*ensemble]*nativeStatefulSets{}

func newNativeStatefulSets(e *ensemble) *nativeStatefulSets {
	w := emptyWorld(e.T, 0, false)
	c := &nativeStatefulSets{e: e, begun: w.now.Add(-e.Fleet.Seen.Now.Sub(fixture.Start))}
	c.process = newProcess(w, 0, c.serveStatefulSet)
	c.sets = newWatch[*apps.StatefulSet, appsv1.StatefulSet](c.process, 0, newStore[*apps.StatefulSet]())
	c.revs = newWatch[*apps.ControllerRevision, appsv1.ControllerRevision](c.process, 1, newStore[*apps.ControllerRevision]())
	c.pods = newWatch[*corev1.Pod, corev1.Pod](c.process, 2, newStore[*corev1.Pod]())
	claims := newWatch[*corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaim](c.process, 3, newStore[*corev1.PersistentVolumeClaim]())
	several(e.several)
	c.start(statefulset.NewStatefulSetController(c.ctx, podInformer{c.pods}, statefulSetInformer{c.sets}, claimInformer{claims},
		revisionInformer{c.revs}, c.client()).Run)
	return c
}

// several sets the feature MaxUnavailableStatefulSet.
func several(is bool) {
	gates := map[string]bool{string(features.MaxUnavailableStatefulSet): is}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		panic(err)
	}
}

// nativeRound is a round of Kubernetes' own controller. It returns the status that it writes.
func nativeRound(e *ensemble, model statefulSetController) appsv1.StatefulSetStatus {
	c := ensembles[e]
	if c == nil {
		clear(ensembles)
		c = newNativeStatefulSets(e)
		ensembles[e] = c
	}
	c.now = c.begun.Add(e.Fleet.Seen.Now.Sub(fixture.Start))
	c.settle()
	c.fill(model)
	c.sets.again()
	c.run()
	return e.StatefulSet.Status
}

// fill gives the caches what the model was given.
func (c *nativeStatefulSets) fill(model statefulSetController) {
	set := typed[appsv1.StatefulSet](model.set)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.RevisionHistoryLimit = new(int32(10))
	if set.Spec.PodManagementPolicy == "" {
		set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	owned := []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	var revisions, pods []any
	for _, each := range c.e.Of().Revisions {
		revisions = append(revisions, revisionOf(set, each, owned))
	}
	for _, each := range model.pods {
		pod := typed[corev1.Pod](each)
		pod.OwnerReferences, pod.Labels = owned, maps.Clone(pod.Labels)
		maps.Copy(pod.Labels, map[string]string{"app": "web", appsv1.StatefulSetPodNameLabel: pod.Name,
			appsv1.PodIndexLabel: fmt.Sprint(model.ordinal(pod))})
		pods = append(pods, pod)
	}
	for index, objects := range map[gated][]any{c.sets.index: {set}, c.revs.index: revisions, c.pods.index: pods} {
		_ = index.Replace(objects, "") // never fails
	}
}

// revisionOf returns the revision as the controller's getPatch and newRevision make it.
func revisionOf(set *appsv1.StatefulSet, of *apps.ControllerRevision, owned []metav1.OwnerReference) *appsv1.ControllerRevision {
	template, err := of.Template()
	if err != nil {
		panic(err)
	}
	as := set.DeepCopy()
	as.Spec.Template = template.Typed()
	raw, err := runtime.Encode(scheme.Codecs.LegacyCodec(appsv1.SchemeGroupVersion), as)
	if err != nil {
		panic(err)
	}
	var whole struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		panic(err)
	}
	whole.Spec.Template["$patch"] = "replace"
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": whole.Spec.Template}})
	if err != nil {
		panic(err)
	}
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: of.Name, Namespace: "shop", UID: of.UID,
		ResourceVersion: fmt.Sprint(of.Name, of.Revision), Labels: map[string]string{"app": "web"}, OwnerReferences: owned},
		Revision: of.Revision, Data: runtime.RawExtension{Raw: patch}}
}

// serveStatefulSet is the API server.
func (c *nativeStatefulSets) serveStatefulSet(q call) (any, error) {
	e := c.e
	switch q.verb + " " + q.resource + "/" + q.sub {
	case "PUT statefulsets/status":
		set := decode[appsv1.StatefulSet](q)
		e.StatefulSet.Status = set.Status
		return set, nil
	case "PUT controllerrevisions/":
		revision := decode[appsv1.ControllerRevision](q)
		e.revision(q.name).Revision = revision.Revision
		return revision, nil
	case "POST pods/":
		pod := decode[corev1.Pod](q)
		if e.Member(e.StatefulSet.Ordinal(&pod)) != nil {
			return nil, fixture.ErrConflict
		}
		e.create(e.StatefulSet.Ordinal(&pod), pod.Labels[appsv1.StatefulSetRevisionLabel])
		return pod, nil
	case "DELETE pods/":
		return c.serveDeletion(q.name)
	}
	panic("the native controller asks for " + q.text())
}

// serveDeletion deletes a pod of the ensemble, for the update unless it has to go anyway.
func (c *nativeStatefulSets) serveDeletion(name string) (any, error) {
	for _, pod := range c.e.Fleet.Seen.Pods {
		if pod.Name != name {
			continue
		}
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if c.e.terminate(pod, c.e.StatefulSet.Wants(c.e.StatefulSet.Ordinal(pod)) && !ended) {
			return nil, errHeld
		}
		return pod, nil
	}
	return nil, errNotFound
}
