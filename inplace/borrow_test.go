package inplace

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// borrowing is a scene whose updates may borrow.
func borrowing(t *testing.T, replicas int32, change func(*Deployment)) *scene {
	s := newScene(t, replicas, change, false)
	s.settings.Borrow = true
	return s
}

func strictly(unavailable, surge string) func(*Deployment) {
	return func(d *Deployment) {
		d.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.Parse(unavailable))
		d.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.Parse(surge))
	}
}

func TestStepsOfBorrowing(t *testing.T) {
	mark := []string{"A marks", "B marks"}
	for name, c := range map[string]struct {
		replicas int32
		change   func(*Deployment)
		want     []string
	}{
		"one replica": {1, nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := borrowing(t, c.replicas, c.change)
			before := sorted(s.pods.objects)
			s.edit("sets the image", app{image: "v2"})
			s.rest()
			s.expect(slices.Concat(mark, c.want)...)
			s.intact(before)
		})
	}
}

var _ = strings.HasPrefix
var _ = time.Second
var _ corev1.Pod
