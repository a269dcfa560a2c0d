package prepull

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	versions "k8s.io/apimachinery/pkg/util/version"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// Pulling is what there is to see of images that are to be on a node before a container there stops.
type Pulling struct {
	// PrePullPods are the workload's, terminating ones too.
	PrePullPods []*corev1.Pod
	// Waiter is what they run.
	Waiter Waiter
	// Refused tells of a target for which the API server takes no pullers.
	Refused Refused
	// Quotas are the ResourceQuotas of the namespace, nil as long as nobody has read them: only a plan that creates pullers is
	// worth it, and has to be made again with them.
	Quotas []corev1.ResourceQuota
}

// Refused is why no puller is created for a target.
type Refused struct {
	UpdateRevision types.UID
	Why            string
}

// PrePull finds out, for one plan, which pods may restart now, since their node has what they need.
type PrePull struct {
	*steps.PlanBuilder
	Pulling
	Workload PodOwner
	// AtATime is on how many nodes images are pulled first; Pulls is the same, or fewer where a partition keeps pods.
	AtATime, Pulls int
	Nodes          map[string]*corev1.Node
	Now            time.Time
	// Reserve is how many pods a quota must leave room for, besides pullers.
	Reserve int
	// Pods are all of the workload that live, Next those that are to restart, in the order in which their turns come.
	Pods, Next []*podstate.State
	// current are the target's pullers, by node.
	current map[string]*corev1.Pod
	// running are the images that pods of the workload run, by node.
	running map[string][]string
	// ahead are the nodes with a puller on which some pod still waits for its turn, behind those of them whose images are not there yet.
	ahead, behind int
}

// Advance says of every pod whether its images are on its node, and has them pulled where they are not.
func (p *PrePull) Advance(paused bool) podstate.Blocked {
	p.look()
	if p.AtATime == 0 {
		p.DeletePrePullPods(p.PrePullPods, "images are not pulled first")
		return nil
	}
	p.count()
	blocked, failed := podstate.Blocked{}, false
	for _, s := range p.Next {
		found := p.find(s)
		p.tell(found, !failed)
		failed = failed || found.failure != ""
		if found.lacks != "" {
			blocked[s] = found.lacks
		}
	}
	p.deleteDone(blocked)
	if !paused {
		p.create(blocked)
	}
	return blocked
}

// look sorts what is there.
func (p *PrePull) look() {
	p.current, p.running = map[string]*corev1.Pod{}, map[string][]string{}
	for _, s := range p.Pods {
		p.running[s.Pod.Spec.NodeName] = append(p.running[s.Pod.Spec.NodeName], running(s.Pod)...)
	}
	for _, prePullPod := range p.PrePullPods {
		if prePullPod.DeletionTimestamp == nil && prePullPod.Name == p.Workload.Name(prePullPod.Spec.NodeName) {
			p.current[prePullPod.Spec.NodeName] = prePullPod
		}
	}
	slices.SortStableFunc(p.Next, func(a, b *podstate.State) int { return cmp.Compare(rank(a), rank(b)) })
}

// rank is how pods come to their turns: those that do not serve anyway go first.
func rank(s *podstate.State) int {
	if s.Available {
		return 1
	}
	return 0
}

// outlook is what there is to say of a pod's images.
type outlook struct {
	// lacks is what the pod has to wait for; empty if its containers may restart.
	lacks string
	// failure tells of an image that cannot be pulled, in a sentence; empty if none is known.
	failure string
	// skipped is why it does not wait for what it lacks; empty if that is no news.
	skipped string
	// again is when to look again although nothing changes.
	again time.Duration
}

// find finds out what the pod has to wait for.
func (p *PrePull) find(s *podstate.State) outlook {
	missing := p.missing(s)
	if len(missing) == 0 || s.Stuck() {
		return outlook{}
	}
	why, skipped, wait := p.without(s)
	if skipped {
		return outlook{skipped: why, again: wait}
	}
	node := s.Pod.Spec.NodeName
	if prePullPod := p.current[node]; holds(prePullPod, missing) {
		switch state, message := p.Waiter.tells(prePullPod); state {
		case podDone:
			return outlook{again: wait}
		case podFailed:
			image := about(missing, message)
			return outlook{lacks: strings.TrimSuffix(awaiting(image, node)+": "+message, ": "), again: wait,
				failure: fmt.Sprintf("Image %s cannot be pulled: %s", image, message)}
		case podWorks, podRejected:
		}
	}
	return outlook{lacks: awaiting(missing[0], node), again: wait}
}

func awaiting(image, node string) string {
	return fmt.Sprintf("waiting for image %s on node %s", image, node)
}

// tell has the plan say it. The first image that cannot be pulled goes before whatever else is waited for.
func (p *PrePull) tell(found outlook, isFirst bool) {
	p.Again(found.again)
	p.Result.NotPulled = cmp.Or(p.Result.NotPulled, found.skipped)
	if found.failure != "" && isFirst {
		p.Waiting = ""
	}
	if found.failure != "" && !slices.Contains(p.Result.PullFailures, found.failure) {
		p.Result.PullFailures = append(p.Result.PullFailures, found.failure)
	}
	p.Waiting = cmp.Or(p.Waiting, found.lacks)
}

// missing are the images of which nobody knows whether the node has them, or that the kubelet asks the registry for anyway. A
// node lists only some of its images (--node-status-max-images), so that one which is not listed may be there all the same.
func (p *PrePull) missing(s *podstate.State) []string {
	if s.Pod.Spec.NodeName == "" {
		return nil // it serves nobody, and pulls when it is scheduled
	}
	var missing []string
	for change := range s.Containers.NewImages() {
		image := change.Image.To
		// What only restarts runs there, under another name.
		if pullPolicy(s.Pod, change) == corev1.PullAlways || !change.Restart && !p.present(s.Pod.Spec.NodeName, image) {
			missing = append(missing, image)
		}
	}
	return missing
}

// pullPolicy is that of the pod, which no patch changes and for which admission may have chosen another than the template's.
// Defaulted as SetDefaults_Container in pkg/apis/core/v1/defaults.go does.
func pullPolicy(pod *corev1.Pod, change edit.ContainerChange) corev1.PullPolicy {
	if c := edit.Named(&pod.Spec, change.Container); c != nil && c.ImagePullPolicy != "" {
		return c.ImagePullPolicy
	}
	if edit.IsLatest(change.Image.To) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// present reports whether the node lists the image, or a pod of the workload runs it there.
func (p *PrePull) present(node, image string) bool {
	if slices.ContainsFunc(p.running[node], func(name string) bool { return edit.SameImage(name, image) }) {
		return true
	}
	at := p.Nodes[node]
	if at == nil {
		return false
	}
	normal := edit.NormalImage(image)
	last := normal[strings.LastIndex(normal, "/")+1:]
	return slices.ContainsFunc(at.Status.Images, func(listed corev1.ContainerImage) bool {
		return slices.ContainsFunc(listed.Names, func(name string) bool {
			return strings.HasSuffix(name, last) && edit.NormalImage(name) == normal // the former is quick, there being many
		})
	})
}

// running are the images that certainly run in the pod: told by both its spec and its status.
func running(pod *corev1.Pod) []string {
	var images []string
	for c := range edit.EachLiving(&pod.Spec) {
		status := readiness.ContainerStatus(pod, c.Name)
		if status.State.Running != nil && status.Ready && edit.SameImage(status.Image, c.Image) {
			images = append(images, c.Image)
		}
	}
	return images
}

// without reports whether nothing can be pulled first on the pod's node, and why; no words where that is no news. If it is only a matter of time,
// of how much.
func (p *PrePull) without(s *podstate.State) (why string, skipped bool, wait time.Duration) {
	name := s.Pod.Spec.NodeName
	node := p.Nodes[name]
	switch room, quota := p.quotaRoom(); {
	case p.Waiter.Image == "":
		return "Stayput does not know its own image", true, 0
	case p.Refused.UpdateRevision == p.Workload.updateRevision && p.Refused.Why != "":
		return p.Refused.Why, true, 0
	case room == 0 && (len(p.PrePullPods) == 0 || !s.Available && p.idle()):
		return quota, true, 0
	case node == nil:
		return "", true, 0 // it is gone, and its pods go
	case !nodes.NodeReady(node) && !s.Ready():
		return "", true, 0 // the kubelet pulls when it is back; until then the pod is down anyway
	}
	if why := cannotMount(node); why != "" {
		return fmt.Sprintf("node %s: %s", name, why), true, 0
	}
	lingers, gone := p.lingers(name)
	if lingers {
		return fmt.Sprintf("node %s: pod %s has been terminating for too long", name, p.Workload.Name(name)), true, 0
	}
	why, skipped, wait = p.rejected(node)
	return why, skipped, times.Sooner(gone, wait)
}

// rejected reports whether the node did not take its puller, or cannot start it; if it is only a matter of time, of how much.
func (p *PrePull) rejected(node *corev1.Node) (why string, is bool, wait time.Duration) {
	prePullPod := p.current[node.Name]
	if prePullPod == nil {
		return "", false, 0
	}
	state, message := p.Waiter.tells(prePullPod)
	if state == podWorks {
		state, message, wait = p.stranded(prePullPod, node)
	}
	if state != podRejected {
		return "", false, wait
	}
	return fmt.Sprintf("node %s: %s", node.Name, message), true, 0
}

// lingers reports whether a puller is in the way of the next one although it should be long gone: somebody has given it a finalizer. If it is only
// a matter of time, of how much.
func (p *PrePull) lingers(node string) (bool, time.Duration) {
	prePullPod := p.named(node)
	if prePullPod == nil || prePullPod.DeletionTimestamp == nil {
		return false, 0
	}
	return times.Since(prePullPod.DeletionTimestamp.Time, stranding, p.Now)
}

// stranding is how long a kubelet may take to give a puller its sandbox and network, or to see it off.
const stranding = time.Minute

// sayingKubelet is the first that says so at once (OnPodSandboxReady in pkg/kubelet/kubelet.go). For others the condition is False for as
// long as they pull.
var sayingKubelet = versions.MustParseGeneric("1.36")

// stranded looks at a puller whose kubelet does not come as far as to pull, since the node has trouble with its network or has no addresses
// left. A pod that is there already may need none of that to restart.
func (p *PrePull) stranded(prePullPod *corev1.Pod, node *corev1.Node) (podState, string, time.Duration) {
	sandbox := conditions.Condition(prePullPod, corev1.PodReadyToStartContainers)
	if nodes.OlderThan(sayingKubelet, node.Status.NodeInfo.KubeletVersion) || sandbox == nil || sandbox.Status != corev1.ConditionFalse {
		return podWorks, "", 0
	}
	if over, wait := times.Since(prePullPod.CreationTimestamp.Time, stranding, p.Now); !over {
		return podWorks, "", wait
	}
	return podRejected, fmt.Sprintf("the kubelet cannot start a pod that pulls (%s is False)", corev1.PodReadyToStartContainers), 0
}

// deleteDone deletes the pullers whose work is done: their node's turn is over, or the target is another. Until then they
// keep the images from the kubelet's garbage collection.
func (p *PrePull) deleteDone(blocked podstate.Blocked) {
	needed := map[string]bool{}
	for _, s := range p.Pods {
		if s.Restarts() && !s.AtPartition || !s.Applied && !s.Move.Restarted(s.Pod) {
			needed[s.Pod.Spec.NodeName] = true
		}
	}
	missing := map[string][]string{}
	for _, s := range p.Next {
		if !blocked.MayStart(s) {
			missing[s.Pod.Spec.NodeName] = append(missing[s.Pod.Spec.NodeName], p.missing(s)...)
		}
	}
	for _, prePullPod := range p.PrePullPods {
		node := prePullPod.Spec.NodeName
		switch {
		case p.current[node] != prePullPod:
			p.Delete(prePullPod, "another update revision")
		case !needed[node]:
			p.Delete(prePullPod, "its node's turn is over")
		case !holds(prePullPod, missing[node]):
			p.Delete(prePullPod, "it lacks an image")
		}
	}
}

// Leave deletes the pullers of an update that is over: as soon as the last containers have started, at once if it went native.
func (p *PrePull) Leave(native inplace.Reasons) {
	if len(native) > 0 {
		p.DeletePrePullPods(p.PrePullPods, native.String())
		return
	}
	p.look()
	p.deleteDone(nil)
}

// create has the images pulled for the pods whose turns come next. While a node's pods have their turn its puller does not
// count, so that pulling goes on ahead of the restarts. Nor does one that is done, where a pod does not serve: all others may be
// waiting for that pod.
func (p *PrePull) create(blocked podstate.Blocked) {
	room, _ := p.quotaRoom()
	begun := map[string]bool{}
	for _, s := range p.Next {
		node := s.Pod.Spec.NodeName
		if blocked.MayStart(s) || begun[node] || p.named(node) != nil {
			continue
		}
		busy := p.ahead
		if !s.Available {
			busy = p.behind
		}
		if len(begun) >= min(p.Pulls-busy, room) {
			return
		}
		begun[node] = true
		p.Step(steps.CreatePrePullPod{Pod: p.prePullPod(s.Pod), UpdateRevision: p.Workload.updateRevision})
	}
}

// named is the puller that has the name of the node's, though it may be about to go; nil if there is none.
func (p *PrePull) named(node string) *corev1.Pod {
	name := p.Workload.Name(node)
	at := slices.IndexFunc(p.PrePullPods, func(prePullPod *corev1.Pod) bool { return prePullPod.Name == name })
	if at < 0 {
		return nil
	}
	return p.PrePullPods[at]
}

// count counts the nodes that pull. Those that did not take their puller, or whose kubelet says nothing, are not among them: nothing is
// pulled there.
func (p *PrePull) count() {
	counted := map[string]bool{}
	for _, s := range p.Next {
		name := s.Pod.Spec.NodeName
		if readiness.Closed(s.Pod) || counted[name] {
			continue
		}
		counted[name] = true
		state, works := p.works(name)
		if works {
			p.ahead++
		}
		if works && state != podDone {
			p.behind++
		}
	}
}

// idle: every puller is done, and stays until its pods have had their turns.
func (p *PrePull) idle() bool { return p.behind == 0 && p.ahead == len(p.PrePullPods) }

// works reports whether the node has a puller and does something about it, and how far that is.
func (p *PrePull) works(name string) (podState, bool) {
	prePullPod, node := p.current[name], p.Nodes[name]
	if prePullPod == nil || node == nil || !nodes.NodeReady(node) {
		return podWorks, false
	}
	state, _ := p.Waiter.tells(prePullPod)
	return state, state != podRejected
}

// prePullPod is the one for the pod's node, with all the images that the pods there will need.
func (p *PrePull) prePullPod(of *corev1.Pod) *corev1.Pod {
	var images []VolumeImage
	for _, s := range p.Next {
		for change := range s.Containers.NewImages() {
			image := VolumeImage{Reference: change.Image.To, Policy: pullPolicy(s.Pod, change)}
			if s.Pod.Spec.NodeName == of.Spec.NodeName && !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
	}
	return NewPod(p.Workload, of, images, p.Waiter)
}

// AllToRestart are the pods that will need images. A borrowed one is given back as it is: its puller would hold a place for ever.
func AllToRestart(pods iter.Seq[*podstate.State]) []*podstate.State {
	var all []*podstate.State
	for s := range pods {
		if s.ToRestart() {
			all = append(all, s)
		}
	}
	return all
}
