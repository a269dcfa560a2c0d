//go:build e2e && systems

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestSystems updates etcd and NATS, three members each, $UPDATES times in place and $NATIVE times natively, under acknowledged writes. In
// place no acknowledged write is lost, every volume stays attached, and two members serve at every moment. How long that takes, and the
// longest time without an acknowledgement, are printed beside the native figures.
func TestSystems(t *testing.T) {
	updates := numberOf(t, "UPDATES", 3)
	r := newRig(t, int(updates), int(numberOf(t, "NATIVE", updates)))
	defer func() { t.Log(r.table()) }()
	for _, each := range trials() {
		t.Run(each.name(), func(t *testing.T) {
			for _, way := range each.ways {
				t.Run(way.name, func(t *testing.T) { r.run(t, each, way) })
			}
		})
	}
}

// trial is a system whose volumes take that long to be attached, and the ways in which it is updated, one after another.
type trial struct {
	system system
	delay  time.Duration
	ways   []updateWay
}

func (of trial) name() string { return fmt.Sprintf("%s, attach delay %s", of.system.title, of.delay) }

// trials compares with the native update at its best, too: pods stay on their nodes, so no volume is attached.
func trials() []trial {
	delayed, moved, stays := 10*time.Second, []updateWay{byStayput, toAnotherNode}, []updateWay{byStayput, toAnotherNode, natively}
	return []trial{
		{etcdOrdered(), delayed, moved},
		{etcdParallel(), delayed, moved},
		{natsParallel(), delayed, moved},
		{etcdOrdered(), 0, stays},
		{natsParallel(), 0, stays},
	}
}

// updateWay is one way to update a StatefulSet.
type updateWay struct {
	name     string
	scenario func(*testing.T) *scenario
	rules    Rules
	update   func(*subject, string)
	kept     bool // by promise: pods, volumes, writes, and two of three members
}

var (
	byStayput = updateWay{"in place", func(t *testing.T) *scenario { return newStatefulScenario(t, asShipped(stateful)) }, inPlace,
		(*subject).updated, true}
	natively = updateWay{"native", func(t *testing.T) *scenario { return newScenario(t, unlabelled) }, recreatedMembers,
		(*subject).updated, false}
	toAnotherNode = updateWay{"native, to another node", func(t *testing.T) *scenario { return newScenario(t, unlabelled) }, recreatedMembers,
		(*subject).updatedElsewhere, false}
)

// subject is a system that runs in a scenario.
type subject struct {
	*scenario
	system
	rig *rig
}

// run updates the system, and adds a row to the table.
func (r *rig) run(t *testing.T, of trial, way updateWay) {
	t.Cleanup(func() { cordonOnly(t, "") })
	s := &subject{system: of.system, rig: r}
	t.Cleanup(func() { s.returnVolumes(t) }) // when the namespace is being deleted, which the scenario does
	s.scenario = way.scenario(t)
	s.provision(of.delay)
	s.submitStatefulSet(s.set(s.namespace, r.image))
	s.exposeMembers()
	s.completes(s.ref())
	writes, serving, before, members := s.write(), s.watchServing(), s.attachments(), s.pods(s.ref())
	s.begin(way.name, way.rules)
	measured := row{trial: of.name(), way: way.name, updates: r.updatesOf(way)}
	for round := range measured.updates {
		from := time.Now()
		way.update(s, r.image(s.name, round+2))
		measured.seconds = append(measured.seconds, time.Since(from).Seconds())
		s.completes(s.ref())
		after := s.attachments()
		measured.detached += goneFrom(before, after)
		before = after
	}
	measured.fewest = fewestServing(int(replicasOfMembers), serving())
	measured.report = writes.end(s.scenario)
	r.rows = append(r.rows, measured)
	t.Log(measured)
	if way.kept {
		s.kept(s.ref(), members, restarts{s.name: exactly(measured.updates)})
		measured.promised(t)
	}
}

// updatesOf returns how often the way is tried. Native updates take much longer than those in place.
func (r *rig) updatesOf(way updateWay) int {
	if way.kept {
		return r.updates
	}
	return r.native
}

// promised checks what is promised of updates in place.
func (r row) promised(t *testing.T) {
	if r.report.Lost > 0 {
		t.Errorf("%d acknowledged writes are lost, such as %v", r.report.Lost, r.report.LostSome)
	}
	if r.detached > 0 {
		t.Errorf("%d VolumeAttachments were deleted", r.detached)
	}
	if r.fewest < 2 {
		t.Errorf("%d of the members served at the worst moment", r.fewest)
	}
}

// row is a line of the table.
type row struct {
	trial, way                string
	updates, detached, fewest int
	seconds                   []float64
	report                    writeReport
}

const rowFormat = "%-44s %-24s %7s %8s %8s %9s %9s %5s %7s %9s %8s"

func (r row) String() string {
	sorted := slices.Sorted(slices.Values(r.seconds))
	number := func(value float64) string { return fmt.Sprintf("%.1f", value) }
	return fmt.Sprintf(rowFormat, r.trial, r.way, fmt.Sprint(r.updates), number(sorted[len(sorted)/2]), number(sorted[len(sorted)-1]),
		number(float64(r.report.Acknowledged)/r.report.Seconds), fmt.Sprint(r.report.Acknowledged), fmt.Sprint(r.report.Lost),
		fmt.Sprintf("%.2f", r.report.Gap), fmt.Sprint(r.detached), fmt.Sprint(r.fewest))
}

// table returns all rows. Seconds are those of one update: the median and the longest.
func (r *rig) table() string {
	lines := []string{fmt.Sprintf(rowFormat, "three members of", "updated", "updates", "seconds", "longest", "writes/s", "writes", "lost",
		"gap", "detached", "serving")}
	for _, each := range r.rows {
		lines = append(lines, each.String())
	}
	return "updates under acknowledged writes\n" + strings.Join(lines, "\n")
}

// updated updates to the image, and returns when `kubectl rollout status` says that the update is over.
func (s *subject) updated(image string) {
	s.Helper()
	s.setTo(image)
	s.ends(s.ref())
}

// setTo edits the image. It does not run kubectl, which takes as long to start as a container.
func (s *subject) setTo(image string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, s.name, image)
	sets, kind := clients.AppsV1().StatefulSets(s.namespace), types.StrategicMergePatchType
	if _, err := sets.Patch(s.Context(), s.name, kind, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	s.wait("the edit to arrive", func(w world) error {
		if sts := w.statefulSet(s.name); sts == nil || sts.Spec.Template.Spec.Containers[0].Image != image {
			return errors.New("it has not")
		}
		return nil
	})
}

// updatedElsewhere updates natively while no pod may return to its node, as during an upgrade of the nodes: each node is cordoned before
// the StatefulSet controller deletes the pod on it, and is free again when that pod has another node.
func (s *subject) updatedElsewhere(image string) {
	s.Helper()
	for ordinal := int(replicasOfMembers) - 1; ordinal >= 0; ordinal-- {
		was := s.recorder.member(s.name, ordinal)
		cordonOnly(s.T, was.Spec.NodeName)
		if ordinal == int(replicasOfMembers)-1 {
			s.setTo(image)
		}
		s.wait(was.Name+" to have another node", func(w world) error {
			if is := w.member(s.name, ordinal); is == nil || is.UID == was.UID || is.Spec.NodeName == "" {
				return errors.New("it has not")
			}
			return nil
		})
	}
	s.ends(s.ref())
	cordonOnly(s.T, "")
}

// member returns the live pod of a StatefulSet with that ordinal, or nil.
func (w world) member(name string, ordinal int) *corev1.Pod {
	sts := w.statefulSet(name)
	if sts == nil {
		return nil
	}
	for _, pod := range w.members(sts) {
		if ordinalOf(pod) == ordinal {
			return pod
		}
	}
	return nil
}

// member returns the live pod with that ordinal by what has arrived, or nil.
func (r *Recorder) member(name string, ordinal int) *corev1.Pod {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.live.member(name, ordinal)
}

// cordonOnly makes all nodes schedulable except one, or all if it is "".
func cordonOnly(t *testing.T, node string) {
	t.Helper()
	ctx, nodes := context.Background(), clients.CoreV1().Nodes()
	all, err := nodes.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range all.Items {
		if each.Spec.Unschedulable == (each.Name == node) {
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, each.Name == node)
		if _, err := nodes.Patch(ctx, each.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// attachments returns the VolumeAttachments of the scenario's volumes.
func (s *subject) attachments() map[types.UID]bool {
	s.Helper()
	found, err := clients.StorageV1().VolumeAttachments().List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	there := map[types.UID]bool{}
	for _, each := range found.Items {
		if volume := each.Spec.Source.PersistentVolumeName; volume != nil && strings.HasPrefix(*volume, s.namespace+"-") {
			there[each.UID] = true
		}
	}
	return there
}

func goneFrom(before, after map[types.UID]bool) int {
	count := 0
	for uid := range before {
		if !after[uid] {
			count++
		}
	}
	return count
}

// exposeMembers creates the headless Service that gives each member a name, also before it is ready: members have to find each other first.
func (s *subject) exposeMembers() {
	s.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": s.name}, PublishNotReadyAddresses: true, Ports: s.ports}}
	if _, err := clients.CoreV1().Services(s.namespace).Create(s.Context(), service, metav1.CreateOptions{}); err != nil {
		s.Fatalf("creating Service %s: %v", s.name, err)
	}
}
