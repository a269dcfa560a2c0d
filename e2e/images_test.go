//go:build e2e

package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// once expects one restart of the container app.
var once = restarts{"app": exactly(1)}

// images edits images, which every running pod can take.
func images(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"pods created before Stayput": bornBefore,
		"Recreate, 1 replica":         recreatingOne,
		"kubectl apply --server-side": declared,
	})
	nightly(t, map[string]func(*testing.T){
		"the native name is taken": hashCollision,
	})
}

// recreatingOne checks that the only pod of a Deployment with strategy Recreate is updated in place: it may be unavailable.
func recreatingOne(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(1, recreating))
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
}

// declared updates with a manifest: the same command creates and changes the Deployment.
func declared(t *testing.T) {
	arguments := []string{"apply", "--server-side", "-f", "-"}
	s := newScenario(t, labelled)
	s.kubectl(manifest(t, web(3)), arguments...)
	s.completes("web")
	s.inPlace("web", once, func() { s.kubectl(manifest(t, web(3, image("v2"))), arguments...) })
}

// bornBefore updates pods that are older than the namespace's label. They are taken out of service as others are.
func bornBefore(t *testing.T) {
	s := newScenario(t, unlabelled)
	s.create(web(3))
	s.label("stayput.dev/update=in-place")
	s.managed("web")
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.allWereOut("web")
	s.inPlace("web", nil, func() {
		s.patch("web", `{"spec":{"template":{"metadata":{"labels":{"helm.sh/chart":"web-1.0.1"}}}}}`)
	})
}

// twin returns a ReplicaSet that web adopts, with the template of web at v2 and no replicas.
func twin(name string) *appsv1.ReplicaSet {
	template := web(0, image("v2")).Spec.Template
	template.Labels[hashLabel] = name
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: template.Labels},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", hashLabel: name}},
			Template: template,
		},
	}
}

// hashCollision creates a foreign object with the name that the Deployment controller would give the new ReplicaSet. The name is known from
// an earlier instance of the same Deployment.
func hashCollision(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(2, image("v2")))
	var taken string
	s.wait("the name", on("web", func(w world, d *appsv1.Deployment) error {
		taken = w.updateReplicaSet(d).Name
		return nil
	}))
	s.kubectl("", "delete", "deployment", "web", "--cascade=foreground", "--timeout=2m")

	stranger := twin("stranger")
	stranger.Name = taken
	stranger.Labels, stranger.Spec.Template.Labels["app"], stranger.Spec.Selector.MatchLabels["app"] = nil, "stranger", "stranger"
	if _, err := clients.AppsV1().ReplicaSets(s.namespace).Create(t.Context(), stranger, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.create(web(2))
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	if collisions := s.deployment("web").Status.CollisionCount; collisions == nil || *collisions == 0 {
		t.Error("there was no collision")
	}
}
