//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// once expects one restart of the container app.
var once = restarts{"app": exactly(1)}

// images makes the edits that every running pod can take.
func images(t *testing.T) {
	scenarios := map[string]func(*testing.T){
		"two Deployments at once":        twoAtOnce,
		"pods created before Stayput":    bornBefore,
		"undo of pods created before":    bornBeforeUndone,
		"owned by another controller":    ownedByAnother,
		"no revision history":            noHistory,
		"twins with equal templates":     twins,
		"the native name is taken":       hashCollision,
		"every revision is known after":  revisions,
		"label removed and then changed": labelRemoved,
	}
	for name, scenario := range edits() {
		scenarios[name] = func(t *testing.T) {
			s := newStage(t, labelled)
			s.create(scenario.deployment)
			s.inPlace("web", scenario.restarts, func() { scenario.edit(s) })
		}
	}
	for _, command := range []string{"apply", "apply --server-side", "replace"} {
		scenarios["kubectl "+command] = func(t *testing.T) { declared(t, command) }
	}
	together(t, lengthy(scenarios, "undo of pods created before", "no revision history", "two Deployments at once",
		"owned by another controller",
		"every revision is known after", "label removed and then changed", "set image, 1 replica", "set image, 2 replicas",
		"set image, 3 replicas", "one of two containers", "both containers", "label only", "image and label", "kubectl replace"))
}

type edit struct {
	deployment *appsv1.Deployment
	restarts   restarts
	edit       func(*stage)
}

func edits() map[string]edit {
	toV2 := func(s *stage) { s.setImage("web", "app=v2") }
	return map[string]edit{
		"set image, 1 replica":   {web(1), once, toV2},
		"set image, 2 replicas":  {web(2), once, toV2},
		"set image, 3 replicas":  {web(3), once, toV2},
		"set image, 12 replicas": {web(12), once, toV2},
		"one of two containers":  {web(3, withSide), restarts{"side": exactly(1)}, func(s *stage) { s.setImage("web", "side=v2") }},
		"both containers": {web(3, withSide), restarts{"app": exactly(1), "side": exactly(1)},
			func(s *stage) { s.setImage("web", "app=v2", "side=v3") }},
		"label only": {web(3), nil, func(s *stage) {
			s.patch("web", `{"spec":{"template":{"metadata":{"labels":{"helm.sh/chart":"web-1.0.1"}}}}}`)
		}},
		"image and label": {web(3), once, func(s *stage) {
			s.kubectl("", "patch", "deployment", "web", "--type=strategic", "-p", fmt.Sprintf(
				`{"spec":{"template":{"metadata":{"labels":{"helm.sh/chart":"web-2.0.0"}},"spec":{"containers":[{"name":"app","image":%q}]}}}}`,
				appImage("v2")))
		}},
	}
}

// declared updates with a manifest: the same command creates and changes the Deployment.
func declared(t *testing.T, command string) {
	creation, change := []string{"apply", "-f", "-"}, []string{"apply", "-f", "-"}
	switch command {
	case "apply --server-side":
		creation, change = append(creation, "--server-side"), append(change, "--server-side")
	case "replace":
		creation[0], change[0] = "create", "replace"
	}
	s := newStage(t, labelled)
	s.kubectl(manifest(t, web(3)), creation...)
	s.completes("web")
	s.inPlace("web", once, func() { s.kubectl(manifest(t, web(3, image("v2"))), change...) })
}

func twoAtOnce(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(3))
	s.create(web(4, named("api")))
	before := s.pods("api")
	s.inPlace("web", once, func() {
		s.setImage("web", "app=v2")
		s.setImage("api", "app=v3")
	})
	s.completes("api")
	s.kept("api", before, once)
}

// bornBefore updates pods that are older than the namespace's label. They are taken out of service as others are.
func bornBefore(t *testing.T) {
	s := newStage(t, unlabelled)
	s.create(web(3))
	s.label("stayput.dev/update=in-place")
	s.managed("web")
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.allWereOut("web")
	s.inPlace("web", nil, func() {
		s.patch("web", `{"spec":{"template":{"metadata":{"labels":{"helm.sh/chart":"web-1.0.1"}}}}}`)
	})
}

func bornBeforeUndone(t *testing.T) {
	s := newStage(t, unlabelled)
	s.create(web(4, slow))
	s.label("stayput.dev/update=in-place")
	s.managed("web")
	s.inPlace("web", restarts{"app": {0, 2}}, func() {
		s.setImage("web", "app=v2")
		s.reaches("web", partly)
		s.rollout("undo", "web")
	})
	s.met("web", partly)
}

// ownedByAnother checks that a Deployment that an operator owns is updated as any other.
func ownedByAnother(t *testing.T) {
	s := newStage(t, labelled)
	owner, err := clients.CoreV1().ConfigMaps(s.namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := web(3)
	d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	s.create(d)
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
}

func noHistory(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(3, historyLimit(0)))
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.inPlace("web", once, func() { s.setImage("web", "app=v3") })
}

func revisions(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(2))
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.inPlace("web", once, func() { s.setImage("web", "app=v3") })
	s.history("web", "1", "2", "3")
	s.expectIn(s.rollout("history", "web", "--revision=2"), appImage("v2"))
}

// labelRemoved checks that a label that the template no longer has is removed from the pods.
func labelRemoved(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(3))
	s.inPlace("web", nil, func() {
		s.patch("web", `{"spec":{"template":{"metadata":{"labels":{"helm.sh/chart":null,"release":"one"}}}}}`)
	})
	for _, pod := range s.pods("web") {
		if _, there := pod.Labels["helm.sh/chart"]; there {
			t.Errorf("pod %s still has the label helm.sh/chart", pod.Name)
		}
	}
}

// twins has two ReplicaSets with the template of the edit before the edit. The Deployment controller takes the older one.
func twins(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(3))
	for _, name := range []string{"twin-1", "twin-2"} {
		if _, err := clients.AppsV1().ReplicaSets(s.namespace).Create(t.Context(), twin(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.wait("the twins to be adopted", on("web", func(w world, d *appsv1.Deployment) error {
		if n := len(w.setsOf(d)); n != 3 {
			return fmt.Errorf("web owns %d ReplicaSets instead of 3", n)
		}
		return nil
	}))
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
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
	s := newStage(t, labelled)
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
