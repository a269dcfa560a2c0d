package commands

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
)

const podsPath = "/api/v1/namespaces/shop/pods/"

// staged returns the Deployment web with four pods, so many of which are updated and available, at a partition.
func staged(updated int32, partition string) map[string]runtime.Object {
	d := web()
	d.Annotations = map[string]string{inplace.AnnotationPartition: partition}
	d.Spec.Template.Spec.Containers[0].Image = "app:2"
	d.Status = appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: updated, AvailableReplicas: 4}
	marks := map[string]string{"app": "web", inplace.LabelUpdating: "1767262800"}
	if updated == 4 {
		marks = nil
	}
	objects := map[string]runtime.Object{shopPath: shop("in-place"), webPath: d}
	for name, image := range map[string]string{"old": "app:1", "new": "app:2"} {
		replicas := map[string]int32{"old": 4 - updated, "new": updated}[name]
		rs := revision(name, image, replicas, maps.Clone(marks))
		rs.Status.Replicas = replicas
		objects[inShop+"replicasets/"+name] = rs
	}
	for i := range int32(4) {
		name, owner, image := fmt.Sprint("p", i), "old", "app:1"
		if i < updated {
			owner, image = "new", "app:2"
		}
		objects[podsPath+name] = pod(name, owner, image, true)
	}
	return objects
}

// patched returns the value of the last operation of a JSON patch.
func patched(t *testing.T, patch []byte) (operations []jsonpatch.Operation, value any) {
	t.Helper()
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatal(err)
	}
	return operations, operations[len(operations)-1].Value
}

func TestPromote(t *testing.T) {
	for name, test := range map[string]struct {
		from, to []string // partition before and after; empty if nothing is written
		flags    []string
		want     string
	}{
		"to the next stage": {[]string{"3"}, []string{"2"}, nil, "2 of 4 pods are updated, 2 keep their old revision\n"},
		"from a percentage": {[]string{"75%"}, []string{"2"}, nil, "2 of 4 pods are updated, 2 keep"},
		"to the last stage": {[]string{"2"}, []string{"0"}, nil, "deployment web is updated: all 4 pods\n"},
		"to a number":       {[]string{"3"}, []string{"1"}, []string{"--to", "1"}, "3 of 4 pods are updated, 1 keep"},
		"to a percentage":   {[]string{"3"}, []string{"50%"}, []string{"--to", "50%"}, "2 of 4 pods are updated"},
		"to the same stage": {[]string{"3"}, nil, []string{"--to", "75%"}, "has reached its stage: 1 of 4 pods are updated"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := inplace.Partition{Value: test.from[0]}.Keeps(4)
			s := serve(t, staged(int32(4-kept), test.from[0]))
			var written []string
			s.write = func(path string, patch []byte) {
				operations, to := patched(t, patch)
				written = append(written, to.(string))
				if was := operations[len(operations)-2]; path != webPath || was.Operation != "test" || was.Value != test.from[0] {
					t.Errorf("%s is not guarded: %v", path, operations)
				}
				s.objects = staged(int32(4-inplace.Partition{Value: to.(string)}.Keeps(4)), to.(string))
			}
			said, code := s.run(append([]string{"promote", "deploy/web", "-n", "shop"}, test.flags...)...)
			if code != 0 || !strings.Contains(said.out, test.want) || strings.Join(written, " ") != strings.Join(test.to, " ") {
				t.Errorf("exit code %d, wrote %q:\n%s%s", code, written, said.out, said.err)
			}
		})
	}
}

// TestNothingToPromote checks that promote keeps the partition for the next update where none is in progress.
func TestNothingToPromote(t *testing.T) {
	s := serve(t, staged(4, "3"))
	if said, code := s.run("promote", "deploy/web", "-n", "shop"); code != 0 || !strings.Contains(said.out, "nothing to promote: no update") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// closedNow returns a maintenance window that is closed for some hours.
func closedNow() string {
	opens := time.Now().UTC().Add(12 * time.Hour)
	return fmt.Sprintf("%s %02d:00-%02d:30", opens.Format("Mon"), opens.Hour(), opens.Hour())
}

// TestPromoteFails checks that nothing is written unless the stage before is reached, and what is said then.
func TestPromoteFails(t *testing.T) {
	condition := func(message string) func(d *appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
				Reason: deployments.ReasonTimedOut, Message: message}}
		}
	}
	for name, test := range map[string]struct {
		change func(d *appsv1.Deployment)
		flags  []string
		want   string
	}{
		"stalled": {condition(`ReplicaSet "new" has timed out progressing.`), nil, `stalled: ReplicaSet "new" has timed out progressing.`},
		"native":  {func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Recreate" }, nil, "the update is native"},
		"no mode": {func(d *appsv1.Deployment) { d.Labels = map[string]string{inplace.LabelUpdate: inplace.Native} }, nil,
			`label stayput.dev/update is "native"`},
		"no partition": {func(d *appsv1.Deployment) { d.Annotations[inplace.AnnotationPartition] = "half" }, nil, `"half" is neither a number`},
		"in no window": {func(d *appsv1.Deployment) {
			d.Annotations[inplace.AnnotationMaintenanceWindow] = closedNow()
		}, []string{"--timeout", "10ms"}, "1 of 4 pods are updated, and all others wait for the maintenance window, which opens on "},
		"raised":           {nil, []string{"--to", "4"}, "--to 4 would keep 4 pods, and only 3 keep their old revision"},
		"an invalid stage": {nil, []string{"--to", "half"}, `--to: "half" is neither a number of pods nor 0% to 100%`},
		"not in time": {func(d *appsv1.Deployment) { d.Annotations[inplace.AnnotationPartition] = "1" }, []string{"--timeout", "10ms"},
			"timed out after 10ms: Waiting for deployment web: 1 of 4 pods are updated, 1 keep their old revision"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, staged(1, "3"))
			if test.change != nil {
				test.change(s.objects[webPath].(*appsv1.Deployment))
			}
			said, code := s.run(append([]string{"promote", "deploy/web", "-n", "shop"}, test.flags...)...)
			if code != 1 || !strings.Contains(said.err, test.want) {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
}

// TestPromoteEndsWhenTheWorkloadChanges checks what ends promote after it has lowered the partition.
func TestPromoteEndsWhenTheWorkloadChanges(t *testing.T) {
	for name, test := range map[string]struct {
		change func(d *appsv1.Deployment)
		want   string
	}{
		"another template": {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:3" }, "the template was edited meanwhile"},
		"stalled": {func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
				Reason: deployments.ReasonTimedOut, Message: `ReplicaSet "new" has timed out progressing. It is waiting for a node.`}}
		}, "It is waiting for a node."},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, staged(1, "3"))
			s.write = func(string, []byte) {
				d := s.objects[webPath].(*appsv1.Deployment)
				d.Annotations[inplace.AnnotationPartition] = "2"
				test.change(d)
			}
			if said, code := s.run("promote", "deploy/web", "-n", "shop"); code != 1 || !strings.Contains(said.err, test.want) {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
}

// TestPromoteIsTooLate: the API server has another partition than the plugin has read.
func TestPromoteIsTooLate(t *testing.T) {
	s := serve(t, staged(1, "3"))
	s.write = func(string, []byte) {}
	s.refusal = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", appsv1.Resource("deployments"), "web",
		"the test failed", 0, true)
	if said, code := s.run("promote", "deploy/web", "-n", "shop"); code != 1 || !strings.Contains(said.err, "run promote again") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// stagedSet returns the StatefulSet db, the highest ordinals of which are updated. They begin at 5.
func stagedSet(partition int32) map[string]runtime.Object {
	set := db()
	set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
	set.Spec.Template.Spec.Containers[0].Image = "app:2"
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}}
	set.Status = appsv1.StatefulSetStatus{AvailableReplicas: 3, UpdatedReplicas: 3 - partition,
		UpdateRevision: "db-2", CurrentRevision: "db-1"}
	objects := map[string]runtime.Object{shopPath: shop("in-place"), dbPath: set}
	for i, image := range []string{"app:1", "app:2"} {
		name, template := fmt.Sprint("db-", i+1), template()
		template.Spec.Containers[0].Image = image
		data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
		if err != nil {
			panic(err)
		}
		objects[inShop+"controllerrevisions/"+name] = &appsv1.ControllerRevision{Revision: int64(i + 1), Data: runtime.RawExtension{Raw: data},
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ControllerRevision"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u", Labels: map[string]string{"app": "web"},
				OwnerReferences: ownedBy("StatefulSet", "db")}}
	}
	for i := range int32(3) {
		name, revision, image := fmt.Sprint("db-", 5+i), "db-1", "app:1"
		if i >= partition {
			revision, image = "db-2", "app:2"
		}
		p := pod(name, "", image, true)
		p.OwnerReferences, p.Labels[inplace.LabelRevisionHash] = ownedBy("StatefulSet", "db"), revision
		objects[podsPath+name] = p
	}
	return objects
}

// TestPromoteOfAStatefulSet checks that its own partition is lowered.
func TestPromoteOfAStatefulSet(t *testing.T) {
	s := serve(t, stagedSet(2))
	s.write = func(path string, patch []byte) {
		operations, to := patched(t, patch)
		if at := operations[len(operations)-1].Path; path != dbPath || at != "/spec/updateStrategy/rollingUpdate/partition" || to != 1.0 {
			t.Errorf("%s: %v", path, operations)
		}
		s.objects = stagedSet(1)
	}
	said, code := s.run("promote", "sts/db", "-n", "shop")
	if code != 0 || !strings.Contains(said.out, "statefulset db has reached its stage: 2 of 3 pods are updated, 1 keep their old revision") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestPromoteWithoutADeadline: a StatefulSet has stalled when a container of an updated pod crashes.
func TestPromoteWithoutADeadline(t *testing.T) {
	objects := stagedSet(2)
	objects[dbPath].(*appsv1.StatefulSet).Status.AvailableReplicas = 2
	crashing := objects[podsPath+"db-7"].(*corev1.Pod)
	crashing.Status.Conditions[0].Status = corev1.ConditionFalse
	crashing.Status.ContainerStatuses[0].Ready = false
	crashing.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	said, code := serve(t, objects).run("promote", "sts/db", "-n", "shop")
	const want = "the update has stalled: pod db-7 waits for readiness of container app: CrashLoopBackOff"
	if code != 1 || !strings.Contains(said.err, want) {
		t.Errorf("exit code %d: %s", code, said)
	}
}
