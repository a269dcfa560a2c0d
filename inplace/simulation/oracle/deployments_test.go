package simulation

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

func init() {
	_, consistent = utilfeature.DefaultMutableFeatureGate.GetAll()["StaleControllerConsistencyReplicaSet"]
	startNatives = func(w *world) {
		endAll()
		restartDisruption(w)
		w.deploymentController, w.replicaSetController = nativeDeployments(w), nativeReplicaSets(w)
	}
}

type nativeDeploymentController struct{ *process }

func nativeDeployments(w *world) nativeDeploymentController {
	p := newProcess(w, 0, w.serveDeployment)
	controller, err := deployment.NewDeploymentController(p.ctx, watchDeployments(p), watchReplicaSets(p), watchPods(p), p.client())
	if err != nil {
		panic(err)
	}
	p.start(controller.Run)
	return nativeDeploymentController{p}
}

func (c nativeDeploymentController) resync() { c.again(0) }

type nativeReplicaSetController struct{ *process }

func nativeReplicaSets(w *world) nativeReplicaSetController {
	p := newProcess(w, 1, w.serveDeployment)
	p.some = true
	p.start(replicaset.NewReplicaSetController(p.ctx, watchReplicaSets(p), watchPods(p), p.client(), replicaset.BurstReplicas).Run)
	return nativeReplicaSetController{p}
}

func (c nativeReplicaSetController) resync() { c.again(1) }

// serveDeployment is the API server for the controllers of a Deployment.
func (w *world) serveDeployment(c call) (any, error) {
	w.logf("asks: %s %s/%s %s", c.verb, c.resource, c.name, c.sub)
	switch c.verb + " " + c.resource + "/" + c.sub {
	case "GET replicasets/":
		if c.name == "" {
			return map[string]any{"kind": "ReplicaSetList", "apiVersion": "apps/v1", "items": sorted(w.sets.objects)}, nil
		}
		return found(w.sets, c.name)
	case "GET deployments/":
		return found(w.deployments, c.name)
	case "POST replicasets/":
		rs := decode[apps.ReplicaSet](c)
		return &rs, w.createReplicaSet(&rs)
	case "PUT replicasets/":
		return w.serveReplicaSet(decode[apps.ReplicaSet](c))
	case "DELETE replicasets/":
		return metav1.Status{Status: metav1.StatusSuccess, Code: 200}, w.deleteReplicaSet(c.name)
	case "PUT replicasets/status":
		next := decode[apps.ReplicaSet](c)
		return alter(w, w.sets, c.name, next.ResourceVersion, func(rs *apps.ReplicaSet) { rs.Status = next.Status })
	case "PUT deployments/status":
		next := decode[apps.Deployment](c)
		return w.deployment(), w.putStatus(&next)
	case "POST pods/":
		pod := decode[corev1.Pod](c)
		pod.Namespace = "shop"
		rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: metav1.GetControllerOf(&pod).Name}}
		return &pod, w.postPod(rs, &pod)
	case "DELETE pods/":
		return w.pods.objects[c.name], w.deletePod(c.name)
	}
	w.violated("a native controller asks for %s", c.text())
	return nil, errNotFound
}

func found[T stored[T]](s *store[T], name string) (any, error) {
	object, is := s.objects[name]
	if !is {
		return nil, errNotFound
	}
	return object, nil
}

// serveReplicaSet is a PUT. The API server compares versions before it asks validating webhooks.
func (w *world) serveReplicaSet(next apps.ReplicaSet) (any, error) {
	read := w.sets.objects[next.Name]
	switch {
	case read == nil:
		return nil, errNotFound
	case read.ResourceVersion != next.ResourceVersion:
		return nil, fixture.ErrConflict
	}
	next.Spec.Template, next.Status = read.Spec.Template, read.Status
	return w.putReplicaSet(read, &next)
}
