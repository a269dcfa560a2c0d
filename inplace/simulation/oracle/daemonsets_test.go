package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/daemon/util"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

func init() {
	startDaemons = func(w *world) {
		endAll()
		restartDisruption(w)
		w.daemonSetController = nativeDaemonSets(w)
	}
}

type nativeDaemonSetController struct{ *process }

func nativeDaemonSets(w *world) nativeDaemonSetController {
	p, nodes := newProcess(w, 0, w.serveDaemonSet), newStore[*corev1.Node]()
	for _, node := range w.pull.Nodes {
		nodes.objects[node.Name] = node
	}
	controller, err := daemon.NewDaemonSetsController(p.ctx, watchDaemonSets(p), watchRevisions(p), watchPods(p),
		nodeInformer{newWatch[*corev1.Node, corev1.Node](p, 3, nodes)}, p.client(), flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err != nil {
		panic(err)
	}
	p.start(controller.Run)
	return nativeDaemonSetController{p}
}

func (c nativeDaemonSetController) resync() { c.again(0) }

// serveDaemonSet is the API server for the controller of a DaemonSet.
func (w *world) serveDaemonSet(c call) (any, error) {
	w.logf("asks: %s %s/%s %s", c.verb, c.resource, c.name, c.sub)
	switch c.verb + " " + c.resource + "/" + c.sub {
	case "GET daemonsets/":
		return found(w.daemonSets, c.name)
	case "GET controllerrevisions/":
		return found(w.revisions, c.name)
	case "PUT daemonsets/status":
		next := decode[apps.DaemonSet](c)
		return alter(w, w.daemonSets, c.name, next.ResourceVersion, func(d *apps.DaemonSet) { d.Status = next.Status })
	case "POST controllerrevisions/":
		return w.serveRevision(decode[apps.ControllerRevision](c))
	case "PUT controllerrevisions/":
		next := decode[apps.ControllerRevision](c)
		return alter(w, w.revisions, c.name, next.ResourceVersion, func(r *apps.ControllerRevision) { *r = next })
	case "DELETE controllerrevisions/":
		return metav1.Status{Status: metav1.StatusSuccess, Code: 200}, w.deleteRevision(c.name)
	case "POST pods/":
		pod := decode[corev1.Pod](c)
		node, err := util.GetTargetNodeName(&pod)
		w.postDaemon(&pod, node)
		return &pod, err
	case "DELETE pods/":
		pod := w.pods.objects[c.name]
		if pod != nil && pod.DeletionTimestamp != nil {
			return pod, nil
		}
		return pod, w.deleteDaemon(c.name)
	}
	w.violated("the native controller asks for %s", c.text())
	return nil, errNotFound
}

func (w *world) serveRevision(made apps.ControllerRevision) (any, error) {
	if w.revisions.objects[made.Name] != nil {
		return nil, fixture.ErrConflict
	}
	w.made++
	made.UID, made.CreationTimestamp = types.UID(fmt.Sprint(made.Name, "-", w.made)), w.stamp()
	return put(w, w.revisions, &made), nil
}
