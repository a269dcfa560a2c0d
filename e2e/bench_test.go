//go:build e2e && bench

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// benchRounds is the number of updates of each way, to v2, v3 and so on, unless ROUNDS asks for fewer. No pod gets an image for the second
// time: the kubelet's crash back-off remembers images for ten minutes, and delays a container that gets one again.
const benchRounds = 5

// TestBench makes the same edits in several ways and prints their cost. It checks only that the updates end, and that the promises that the
// judge checks in every scenario are kept. The figures go to BENCH_OUTPUT, where the module report makes a page of them.
func TestBench(t *testing.T) {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	t.Run("pods", func(t *testing.T) { runAll(t, races()) })
	t.Run("slow", func(t *testing.T) { runAll(t, slowRaces()) })
	t.Run("resizes", benchResizes)
	t.Run("serving", benchServing)
	t.Run("members", benchMembers)
	t.Run("cold image", benchCold)
	t.Run("crowd", benchCrowd)
	t.Run("fleet", benchFleet)
	t.Run("strangers", benchStrangers)
	t.Run("workloads", benchWorkloads)
	t.Run("services", benchServices)
	t.Run("birth", benchBirth)
	t.Run("rest", benchRest)
	t.Run("overload", benchOverload)
	t.Run("limits", benchLimits) // restarts the managers
}

// race is a workload of real pods that is updated in several ways, in turns. So a slow phase of the machine slows down all ways.
type race struct {
	name    string
	object  func(lane int) any // *appsv1.Deployment, *appsv1.DaemonSet or *appsv1.StatefulSet; each way has its own lane
	before  func(*scenario)    // creates what the pods need; nil if nothing
	native  bool               // the native rollout can complete
	service bool
	drain   time.Duration // 0: no Service selects the pods
	edit    func(round int) podEdit
	bare    bareWay // none if it has no name
	billed  bool    // what each component of the cluster uses is measured, too
}

// bareWay is a way in which the bench itself updates pods, without Stayput and without a rollout.
type bareWay struct {
	name string
	edit func(*side, podEdit)
}

func races() []race {
	daemons := func(int) any { return agent() }
	ordered := func(int) any { return db(3) }
	parallel := func(int) any { return db(3, policies["Parallel"]) }
	few := func(int) any { return web(4) }
	many := func(int) any { return web(20) }
	lingering := func(int) any { return web(2, takes("", "10s"), graceful(15)) }
	claiming := func(int) any { return web(1, mounting("data")) }
	onPort := func(lane int) any { return web(3, takingPort(int32(18090+lane))) }
	claim := func(s *scenario) { s.volume("data", corev1.ReadWriteOnce) }
	return []race{
		{name: "DaemonSet of 3 nodes, no Service", object: daemons, native: true, bare: floor(1), billed: true},
		{name: "StatefulSet of 3 pods, OrderedReady, no Service", object: ordered, native: true, bare: floor(1)},
		{name: "StatefulSet of 3 pods, Parallel, no Service", object: parallel, native: true, bare: floor(1)},
		{name: "4 pods, no Service", object: few, native: true, bare: floor(1)},
		{name: "4 pods, Service, drain 0.5 s", object: few, native: true, service: true, drain: time.Second / 2, bare: floor(1)},
		{name: "20 pods, no Service", object: many, native: true, bare: floor(5), billed: true},
		{name: "20 pods, Service, drain 2 s", object: many, native: true, service: true, drain: 2 * time.Second, bare: floor(5)},
		{name: "4 pods, Service, default strategy", object: few, native: true, service: true, drain: 2 * time.Second, bare: floor(1)},
		{name: "2 pods that take 10 s to stop, Service", object: lingering, native: true, service: true, drain: 2 * time.Second, bare: floor(1)},
		{name: "1 pod, ReadWriteOnce claim", object: claiming, before: claim, bare: floor(1)},
		{name: "3 pods, hostPort", object: onPort, bare: floor(1)},
	}
}

// graceful sets how long containers may take to stop, in seconds.
func graceful(seconds int64) option {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.TerminationGracePeriodSeconds = &seconds }
}

// slowRaces are races of applications that take long to start. In place, maxUnavailable pods start at a time, and natively maxSurge more.
// There is no floor: it would take as long, and the page computes it.
func slowRaces() []race {
	var all []race
	for _, start := range []string{"5s", "20s"} {
		slow := func(int) any { return web(20, readyAfter("app", start)) }
		name := fmt.Sprintf("20 pods that take %s s to start", strings.TrimSuffix(start, "s"))
		all = append(all,
			race{name: name + ", no Service", object: slow, native: true},
			race{name: name + ", Service, drain 2 s", object: slow, native: true, service: true, drain: 2 * time.Second})
	}
	return all
}

// runAll runs the races. All workloads have the default strategy.
func runAll(t *testing.T, races []race) {
	t.Run("images", warmAll)
	for _, r := range races {
		r.edit = nextImage
		t.Run(r.name, r.run)
	}
}

func (r race) run(t *testing.T) {
	sides := r.sides(t)
	defer func() {
		all := make([]column, 0, len(sides))
		for _, s := range sides {
			all = append(all, s.column())
		}
		present(t, r.name, all)
	}()
	for lane, s := range sides {
		s.begin(r, lane)
	}
	if r.billed {
		payBy(newMeter(t), sides)
	}
	rounds := min(roundsOr(t, benchRounds), benchRounds)
	for round := range rounds {
		before := sides[0].idle()
		for _, s := range sides {
			fmt.Printf("round %d of %d: %s, %s\n", round+1, rounds, r.name, s.way)
			before = s.update(r.edit(round), before)
		}
	}
	for _, s := range sides {
		s.end()
	}
}

// roundsOr returns how often each way updates: ROUNDS, or so often if the caller of make does not say.
func roundsOr(t *testing.T, otherwise int) int {
	t.Helper()
	return max(1, int(numberOf(t, "ROUNDS", uint64(otherwise))))
}

// sides returns a namespace for each way.
func (r race) sides(t *testing.T) []*side {
	labels := with(asShipped(surging), kindsLabel, everyKind)
	if r.drain > 0 {
		labels[drainSetting] = r.drain.String()
	}
	var sides []*side
	if r.native {
		sides = append(sides, &side{way: "native", scenario: newScenario(t, unlabelled), edit: (*side).editTemplate})
	}
	if r.service && r.native {
		replacing := maps.Clone(labels)
		replacing[surgeSetting] = "replace"
		sides = append(sides, &side{way: "in place, replace", scenario: newScenario(t, replacing), edit: (*side).editTemplate, drain: r.drain})
	}
	sides = append(sides, &side{way: "in place", scenario: newScenario(t, labels), edit: (*side).editTemplate, drain: r.drain})
	if r.bare.name != "" {
		sides = append(sides, &side{way: r.bare.name, scenario: unjudged(t, unlabelled), edit: r.bare.edit, drain: r.drain, bare: true})
	}
	return sides
}

// warmAll runs every image on every node for a moment, and waits until all nodes report that they have them. So no node pulls afterwards.
func warmAll(t *testing.T) {
	s := unjudged(t, unlabelled)
	tags := make([]string, benchRounds+1)
	var containers []corev1.Container
	for i := range tags {
		tags[i] = fmt.Sprintf("v%d", i+1)
		c := container(tags[i], 8080+i)
		c.Image = appImage(tags[i])
		containers = append(containers, c)
	}
	s.install(agent(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers = containers }))
	s.listed(tags)
	s.kubectl("", "delete", agents, "--cascade=foreground", "--timeout="+patience.String())
}

// mounting gives the pods a volume.
func mounting(claim string) option {
	return func(d *appsv1.Deployment) {
		spec := &d.Spec.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: claim, MountPath: "/data", ReadOnly: true})
	}
}

// volume creates a claim, and a volume for it on every node.
func (s *scenario) volume(name string, mode corev1.PersistentVolumeAccessMode) {
	s.Helper()
	modes, size := []corev1.PersistentVolumeAccessMode{mode}, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: modes, Capacity: size, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:               &corev1.ObjectReference{Namespace: s.namespace, Name: name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}}}}
	if _, err := clients.CoreV1().PersistentVolumes().Create(s.Context(), volume, metav1.CreateOptions{}); err != nil {
		s.Fatalf("creating a volume: %v", err)
	}
	s.Cleanup(func() {
		if err := clients.CoreV1().PersistentVolumes().Delete(context.Background(), volume.Name, metav1.DeleteOptions{}); err != nil {
			s.Errorf("deleting volume %s: %v", volume.Name, err)
		}
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}, StorageClassName: new(string), VolumeName: volume.Name}}
	if _, err := clients.CoreV1().PersistentVolumeClaims(s.namespace).Create(s.Context(), claim, metav1.CreateOptions{}); err != nil {
		s.Fatalf("creating a claim: %v", err)
	}
}
