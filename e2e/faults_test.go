//go:build e2e && faults

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// fault is something that goes wrong in the middle of updates.
type fault struct {
	name string
	// happens begins the fault, and returns when it is over.
	happens func(*twins)
	// deletes: the fault deletes the namespaces, so their updates end with their pods.
	deletes bool
}

// TestFaults lets one fault after another happen to the same updates in two namespaces, one of which has Stayput's label. In both, every
// rollout has to end, and in the labelled one the judge checks all promises except how many pods are unavailable and replaced. After the
// fault the next update there must be in place, with every pod kept: nothing was left behind. The rows of the table in $PAGE are replaced
// by those of the faults that passed.
func TestFaults(t *testing.T) {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			row := fault.run(t)
			if page := os.Getenv("PAGE"); page != "" && !t.Failed() {
				writeFault(t, page, row)
			}
		})
	}
}

// faultRow is what a fault did to the updates of each namespace.
type faultRow struct {
	Fault           string
	InPlace, Native faultResult
}

// faultResult is what became of the updates of a namespace.
type faultResult struct {
	Seconds float64 // from the edit until the last rollout had ended
	Missing int     // most pods of a workload that were not Ready at a time, beyond its maxUnavailable
	Outage  float64 // for how many seconds at least one was missing so
	Kept    int     // pods that are still there
	Pods    int
}

func (r faultRow) String() string {
	return fmt.Sprintf("%-50s in place %+v, native %+v", r.Fault, r.InPlace, r.Native)
}

// twins are two namespaces with the same workloads.
type twins struct {
	*testing.T
	inPlace, native *scenario
	names           []string
	tag             int // of the last edit
}

func (f fault) run(t *testing.T) faultRow {
	p := newTwins(t)
	before := map[*scenario]map[types.UID]bool{}
	for _, s := range p.both() {
		before[s] = p.uids(s)
	}
	p.inPlace.begin("fault", Rules{Created: anyNumber, Deleted: anyNumber, Outage: true})
	began := time.Now()
	p.edit()
	p.halfway()
	f.happens(p)
	p.supervise()
	t.Logf("the fault was over after %s", time.Since(began).Round(time.Second))
	if f.deletes {
		return faultRow{Fault: f.name, InPlace: p.gone(p.inPlace, began), Native: p.gone(p.native, began)}
	}
	row := faultRow{Fault: f.name}
	var ends sync.WaitGroup
	ends.Go(func() { row.InPlace = p.result(p.inPlace, began, before[p.inPlace]) })
	ends.Go(func() { row.Native = p.result(p.native, began, before[p.native]) })
	ends.Wait()
	t.Log(row)
	if !t.Failed() {
		p.nextIsInPlace()
	}
	return row
}

// newTwins creates a Deployment, a DaemonSet, and a StatefulSet of each pod management policy in both namespaces. Their pods take seconds
// to stop and to become Ready, so that an update lasts longer than most faults.
func newTwins(t *testing.T) *twins {
	t.Helper()
	mended(t)
	p := &twins{T: t, inPlace: newStatefulScenario(t, asShipped(stateful)), native: unjudged(t, unlabelled), tag: 1}
	takes := func(d *appsv1.Deployment) {
		readyAfter("app", "3s")(d)
		stopsAfter("1s", 10)(d)
	}
	for _, s := range p.both() {
		s.recorder.relists.Store(true)
		d, ds := web(4, takes), agent(templated(takes))
		ordered, parallel := db(3, ofTemplate(takes)), db(3, policies["Parallel"], ofTemplate(takes), ofTemplate(named("cache")))
		s.submit(d)
		s.submitDaemonSet(ds)
		s.submitStatefulSet(ordered)
		s.submitStatefulSet(parallel)
		p.names = []string{called(d), called(ds), called(ordered), called(parallel)}
		for _, name := range p.names {
			s.service(name, corev1.ServiceInternalTrafficPolicyCluster)
		}
	}
	for _, s := range p.both() {
		s.wait("all workloads to be there", p.allComplete(s))
	}
	return p
}

func (p *twins) both() []*scenario { return []*scenario{p.inPlace, p.native} }

// edit gives all workloads the next image at once. An edit that fails is tried again until it has been made, as a user would.
func (p *twins) edit() {
	p.Helper()
	p.tag = p.tag%9 + 1
	image := appImage(fmt.Sprintf("v%d", p.tag))
	var edits errgroup.Group
	for _, s := range p.both() {
		for _, name := range p.names {
			edits.Go(func() error {
				return poll(p.Context(), func(ctx context.Context) error { return s.tryImage(ctx, name, image) })
			})
		}
	}
	if err := edits.Wait(); err != nil {
		p.Fatal(err)
	}
}

// supervise starts the scheduler again whenever it has ended itself, as it does when it has missed events. In other clusters a kubelet
// does that.
func (p *twins) supervise() {
	var ended sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	ended.Go(func() {
		wait.UntilWithContext(ctx, func(context.Context) { component(p.T, "start", "kube-scheduler") }, 5*time.Second)
	})
	p.Cleanup(func() {
		stop()
		ended.Wait()
	})
}

// halfway waits until a pod of each namespace is updated.
func (p *twins) halfway() {
	p.Helper()
	for _, s := range p.both() {
		s.wait("a pod to be updated", func(w world) error {
			for _, of := range w.workloads() {
				if slices.ContainsFunc(of.pods, of.updated) {
					return nil
				}
			}
			return errors.New("none is")
		})
	}
}

// allComplete is the condition that every workload is rolled out, and bears no mark of Stayput.
func (p *twins) allComplete(s *scenario) func(world) error {
	return func(w world) error { return w.rolledOut(p.names, s == p.inPlace) }
}

// faultPatience is longer than any rollout may take after a fault: the StatefulSet controller tries again after up to 17 minutes.
const faultPatience = 20 * time.Minute

// result waits until all rollouts of a namespace have ended.
func (p *twins) result(s *scenario, began time.Time, before map[types.UID]bool) faultResult {
	ctx, cancel := context.WithTimeout(p.Context(), faultPatience)
	defer cancel()
	if err := s.recorder.until(ctx, p.allComplete(s)); err != nil {
		p.Errorf("waited in vain for %s: %v", s.namespace, err)
	}
	result := p.replay(s, began)
	for uid := range p.uids(s) {
		result.Pods++
		if before[uid] {
			result.Kept++
		}
	}
	return result
}

// replay returns what the events since that moment say: when the last rollout ended, how many pods of a workload were missing at most at
// a time beyond what its strategy allows, and for how many seconds some were.
func (p *twins) replay(s *scenario, since time.Time) (result faultResult) {
	w, ended, from, missing := newWorld(), false, since, 0
	complete := p.allComplete(s)
	for _, e := range s.recorder.inOrder() {
		w.apply(e)
		if !e.at.After(since) {
			continue
		}
		passed := max(0, e.at.Sub(from)) // watches of several kinds deliver side by side
		if from = from.Add(passed); missing > 0 {
			result.Outage += passed.Seconds()
		}
		most, of := w.missing()
		if missing = most; missing > result.Missing {
			result.Missing = missing
			p.Logf("%s: %d missing of %s after %s", s.namespace, missing, of, e.at.Sub(since).Round(time.Second))
		}
		was := ended
		if ended = complete(w) == nil; ended && !was {
			result.Seconds = e.at.Sub(since).Seconds()
		}
	}
	return result
}

// missing returns the most pods of a workload that are not Ready, beyond what its strategy allows, and which workload that is.
func (w world) missing() (most int, name string) {
	for _, of := range w.workloads() {
		wanted, mayBeMissing := 0, 0
		switch object := of.Object.(type) {
		case *appsv1.Deployment:
			wanted, mayBeMissing = int(replicasOf(object)), maxUnavailable(object)
		case *appsv1.DaemonSet:
			wanted, mayBeMissing = int(object.Status.DesiredNumberScheduled), mayBeUnavailableDaemons(object)
		case *appsv1.StatefulSet:
			wanted, mayBeMissing = replicasOfStatefulSet(object), mayBeUnavailableMembers(object)
		}
		for _, pod := range of.pods {
			if ready(pod) {
				wanted--
			}
		}
		if wanted-mayBeMissing > most {
			most, name = wanted-mayBeMissing, of.GetName()
		}
	}
	return most, name
}

func (p *twins) uids(s *scenario) map[types.UID]bool {
	p.Helper()
	all := map[types.UID]bool{}
	for _, name := range p.names {
		for uid := range s.pods(name) {
			all[uid] = true
		}
	}
	return all
}

// gone waits until a namespace is gone.
func (p *twins) gone(s *scenario, began time.Time) faultResult {
	s.eventually("the namespace to be gone", func(ctx context.Context) error {
		left, err := clients.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + s.namespace})
		if err == nil && len(left.Items) > 0 {
			err = errors.New("it is there")
		}
		return err
	})
	return faultResult{Seconds: time.Since(began).Seconds()}
}

// nextIsInPlace edits all workloads once more, when all is well again. Every pod of the labelled namespace has to be kept.
func (p *twins) nextIsInPlace() {
	p.Helper()
	mended(p.T)
	before := map[string]map[types.UID]*corev1.Pod{}
	for _, name := range p.names {
		p.inPlace.managed(name)
		before[name] = p.inPlace.pods(name)
	}
	p.inPlace.begin("afterwards", inPlace)
	p.edit()
	for _, name := range p.names {
		p.inPlace.completes(name)
		p.inPlace.kept(name, before[name], once)
	}
}

// lasts is for how long a fault lasts: longer than the managers' Lease, than kubelets' rounds, and than most of an update.
func lasts(d time.Duration) { time.Sleep(d) }

var faults = []fault{
	{name: "none", happens: func(*twins) {}},
	{name: "ten edits, one at once after the other", happens: func(p *twins) {
		for range 10 {
			p.edit()
		}
	}},
	{name: "an edit each second for a minute", happens: func(p *twins) {
		for ends := time.Now().Add(time.Minute); time.Now().Before(ends); lasts(time.Second) {
			p.edit()
		}
	}},
	{name: "the API server restarts three times", happens: func(p *twins) { p.restarts(3, "kube-apiserver") }},
	{name: "etcd is stopped for 10 s", happens: func(p *twins) {
		component(p.T, "stop", "etcd")
		lasts(10 * time.Second)
		component(p.T, "start", "etcd")
	}},
	{name: "etcd stalls for 2 s, ten times", happens: func(p *twins) {
		for range 10 {
			p.stalls([]int{p.component("etcd")}, 2*time.Second)
			lasts(time.Second)
		}
	}},
	{name: "kube-controller-manager restarts six times", happens: func(p *twins) { p.restarts(6, "kube-controller-manager") }},
	{name: "the native controllers' API server cannot reach webhooks", happens: unreachableFromSecond},
	{name: "managers' requests take 200 ms more, and 20 % of them fail", happens: badConnection},
	{name: "the webhooks' certificate has expired, cert-manager is stopped", happens: expiredCertificate},
	{name: "the leader stops for a minute", happens: func(p *twins) {
		p.stalls([]int{managerProcess(p.inPlace, p.inPlace.leader())}, time.Minute)
	}},
	{name: "both managers stop for a minute", happens: func(p *twins) { p.stalls(p.inPlace.managerProcesses(), time.Minute) }},
	{name: "both managers are killed each 10 s for a minute", happens: func(p *twins) {
		for range 6 {
			for _, process := range p.inPlace.runningManagers() { // their kubelets may wait before they start one again
				kill(p.inPlace, process)
			}
			lasts(10 * time.Second)
		}
	}},
	{name: "kubelets and containerds restart", happens: func(p *twins) {
		for _, node := range p.inPlace.realNodes() {
			p.restarts(1, "containerd-"+node)
			p.restarts(1, "kubelet-"+node)
		}
	}},
	{name: "a kubelet stops for two minutes", happens: func(p *twins) {
		p.inPlace.stopKubelet(p.otherNode())
		lasts(2 * time.Minute)
		startKubelet(p.T, p.otherNode())
	}},
	{name: "the quota of pods is used up", happens: quotaUsedUp},
	{name: "20 threads on two processors for a minute", happens: func(p *twins) { p.burdened(20) }},
	{name: "100 threads on two processors for a minute", happens: func(p *twins) { p.burdened(100) }},
	{name: "the namespace is deleted", deletes: true, happens: func(p *twins) {
		for _, s := range p.both() {
			if err := clients.CoreV1().Namespaces().Delete(p.Context(), s.namespace, metav1.DeleteOptions{}); err != nil {
				p.Fatal(err)
			}
		}
	}},
	{name: "a node has no disk space for a minute", happens: diskPressure},
}

// restarts restarts a component.
func (p *twins) restarts(times int, name string) {
	for range times {
		component(p.T, "stop", name)
		component(p.T, "start", name)
		lasts(3 * time.Second)
	}
}

// stalls stops processes for a while, as on a machine that hangs.
func (p *twins) stalls(processes []int, d time.Duration) {
	for _, process := range processes {
		send(p.inPlace, process, syscall.SIGSTOP)
	}
	lasts(d)
	for _, process := range processes {
		send(p.inPlace, process, syscall.SIGCONT)
	}
}

func (p *twins) burdened(threads int) {
	p.Run("load", func(t *testing.T) {
		burden(t, threads)
		lasts(time.Minute)
	})
}

// otherNode returns a node on which the leader does not run.
func (p *twins) otherNode() string { return p.inPlace.otherNode(p.inPlace.leader().Spec.NodeName) }

// component returns the process of a component of the cluster, which runs under its name, with that flag if there is one.
func (p *twins) component(name string, flag ...string) int {
	p.Helper()
	for _, process := range processes(p.inPlace) {
		argv := argumentsOf(process)
		isNamed := filepath.Base(argv[0]) == name
		if isNamed && (len(flag) == 0 || slices.Contains(argv, flag[0])) {
			return process
		}
	}
	p.Fatalf("%s %q does not run", name, flag)
	return 0
}

func argumentsOf(process int) []string {
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
	return strings.Split(strings.TrimSuffix(string(command), "\x00"), "\x00")
}

// quotaUsedUp forbids further pods for a minute. Natively, rollouts cannot go on meanwhile where they need one pod more.
func quotaUsedUp(p *twins) {
	for _, s := range p.both() {
		s.kubectl("", "create", "quota", "pods", "--hard=pods=1")
	}
	lasts(time.Minute)
	for _, s := range p.both() {
		s.kubectl("", "delete", "quota", "pods")
	}
}

// writeFault writes a row into the table of a page, which is between two marks. Rows of faults that are gone go.
func writeFault(t *testing.T, page string, row faultRow) {
	t.Helper()
	const begins, ends = "<!-- faults -->\n", "<!-- end of faults -->\n"
	content, err := os.ReadFile(page)
	before, rest, there := strings.Cut(string(content), begins)
	table, after, closed := strings.Cut(rest, ends)
	if err != nil || !there || !closed {
		t.Fatalf("%s has no table of faults: %v", page, err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		if columns := strings.Split(line, " | "); len(columns) > 1 {
			rows[strings.TrimPrefix(columns[0], "| ")] = line
		}
	}
	rows[row.Fault] = row.markdown()
	table = "\n| fault | rollouts ended after | pods kept | most pods missing, and for how long |\n|---|---:|---:|---:|\n"
	for _, fault := range faults {
		table += rows[fault.name]
	}
	if err := os.WriteFile(page, []byte(before+begins+table+"\n"+ends+after), 0o644); err != nil {
		t.Error(err)
	}
}

// markdown is a row of the table: in place, and natively in brackets.
func (r faultRow) markdown() string {
	missing := func(of faultResult) string { return fmt.Sprintf("%d, %.0f s", of.Missing, of.Outage) }
	return fmt.Sprintf("| %s | %.0f s (%.0f s) | %d of %d (%d) | %s (%s) |\n", r.Fault, r.InPlace.Seconds, r.Native.Seconds,
		r.InPlace.Kept, r.InPlace.Pods, r.Native.Kept, missing(r.InPlace), missing(r.Native))
}
