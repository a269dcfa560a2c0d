package simulation

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TestUndoneIsNotDoneBeforeItsContainersAre: a pod that goes back serves on, and has been counted as one of the target all the time.
func TestUndoneIsNotDoneBeforeItsContainersAre(t *testing.T) {
	for name, c := range map[string]struct {
		runs string
		want bool
	}{"the undone one runs still": {"v2", false}, "they are": {"v1", true}} {
		t.Run(name, func(t *testing.T) {
			r := fixture(1, app{image: "v1"})
			target, source := replicaSetOf(r, "a", app{image: "v1"}, 1), replicaSetOf(r, "b", app{image: "v2"}, 0)
			target.Labels[inplace.LabelSettling], source.Labels[inplace.LabelSettling] = begun, begun
			pod := podOf(r, "p", target)
			pod.Generation, pod.Status.ObservedGeneration = 3, 3
			pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "a", Generation: 3, Containers: map[string]readiness.MovedContainer{
				"app": {Image: "v1", ImageID: "sha256:v2", ContainerID: "p/v2", At: metav1.NewTime(start)}}}.String()}
			status := &pod.Status.ContainerStatuses[0]
			status.Image, status.ImageID, status.ContainerID = c.runs, "sha256:"+c.runs, "p/"+c.runs
			unmarks := slices.ContainsFunc(r.Plan().Steps, func(step steps.Step) bool {
				patch, is := step.(steps.PatchReplicaSet)
				return is && strings.Contains(patch.Why, "marks")
			})
			if unmarks != c.want {
				t.Errorf("the update is over: %t", unmarks)
			}
		})
	}
}
