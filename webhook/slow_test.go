package webhook

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// TestNoPodIsLostToASlowAPIServer: where the API server cannot be read in time, the cache says whether a pod stays. The native controller
// is to ask again, so it gets a Conflict, whatever its kind answers otherwise.
func TestNoPodIsLostToASlowAPIServer(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	marked, unmarked := markUpdating(revision(t, "web-1", v1Template, "2")), revision(t, "web-1", v1Template, "2")
	of := func(pod *corev1.Pod, others ...client.Object) []client.Object {
		return append(others, namespace(inplace.ModeInPlace), node, pod)
	}
	late := inplace.LeaderPatience + time.Second
	agent, db := daemon("agent-x", "1"), member("db-1", "db-a")
	agents := []client.Object{controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template)}
	members := []client.Object{memberRevision(t, "a", v1Template), memberRevision(t, "b", v2Template)}
	for name, test := range map[string]struct {
		user  string
		pod   *corev1.Pod
		cache []client.Object
		age   time.Duration // of the leader's last renewal of its Lease
		code  int32
	}{
		"Deployment":               {replicaSetController, pod(marked), of(pod(marked), deployment(t, v2Template), marked), 0, 409},
		"Deployment, no update":    {replicaSetController, pod(unmarked), of(pod(unmarked), deployment(t, v2Template), unmarked), 0, 0},
		"Deployment, no leader":    {replicaSetController, pod(marked), of(pod(marked), deployment(t, v2Template), marked), late, 0},
		"Deployment, no cache":     {replicaSetController, pod(marked), of(pod(marked)), 0, 0},
		"DaemonSet":                {daemonSetController, agent, of(agent, append(agents, daemonSet(t, v2Template))...), 0, 409},
		"DaemonSet, not in place":  {daemonSetController, agent, of(agent, append(agents, daemonSet(t, envTemplate))...), 0, 0},
		"StatefulSet":              {statefulSetController, db, of(db, append(members, statefulSet(t, v2Template, ""))...), 0, 409},
		"StatefulSet, scaled down": {statefulSetController, db, of(db, append(members, statefulSet(t, v2Template, `,"replicas":1`))...), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, reader(t, test.cache...), broken(t))
			h.Hold.Reader = reader(t, lease(test.age))
			req := request(t, test.user, admissionv1.Delete, nil, test.pod)
			expectDenied(t, h.handle(t.Context(), req, h.at("/validate-pod")), test.code)
		})
	}
}
