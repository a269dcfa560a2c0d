package inplace

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
)

// Pulling is what there is to see of images that are to be on a node before a container there stops.
type Pulling struct {
	// Pullers are the workload's, terminating ones too.
	Pullers []*corev1.Pod
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
	Target types.UID
	Why    string
}

// prePull finds out, for one plan, which pods may restart now, since their node has what they need.
type prePull struct {
	*draft
	Pulling
	workload pullerOwner
	atATime  int
	nodes    map[string]*corev1.Node
	now      time.Time
	// reserve is how many pods a quota must leave room for, besides pullers.
	reserve int
	// pods are all of the workload that live, next those that are to restart, in the order in which their turns come.
	pods, next []*podState
	// current are the target's pullers, by node.
	current map[string]*corev1.Pod
	// running are the images that pods of the workload run, by node.
	running map[string][]string
	// ahead are the nodes with a puller on which some pod still waits for its turn, behind those of them whose images are not there yet.
	ahead, behind int
}

// lacking is what pods wait for before they may restart; those that wait for nothing are not in it.
type lacking map[*podState]string

// mayStart tells whether the pod's new images are on its node, as far as that can be had.
func (l lacking) mayStart(s *podState) bool { return l[s] == "" }

// advance says of every pod whether its images are on its node, and has them pulled where they are not.
func (p *prePull) advance(paused bool) lacking {
	p.look()
	if p.atATime == 0 {
		p.dismissAll(p.Pullers, "images are not pulled first")
		return nil
	}
	p.count()
	lacking, failed := lacking{}, false
	for _, s := range p.next {
		found := p.find(s)
		p.tell(found, !failed)
		failed = failed || found.failure != ""
		if found.lacks != "" {
			lacking[s] = found.lacks
		}
	}
	p.dismissDone(lacking)
	if !paused {
		p.create(lacking)
	}
	return lacking
}

// look sorts what is there.
func (p *prePull) look() {
	p.current, p.running = map[string]*corev1.Pod{}, map[string][]string{}
	for _, s := range p.pods {
		p.running[s.pod.Spec.NodeName] = append(p.running[s.pod.Spec.NodeName], running(s.pod)...)
	}
	for _, puller := range p.Pullers {
		if puller.DeletionTimestamp == nil && puller.Name == p.workload.name(puller.Spec.NodeName) {
			p.current[puller.Spec.NodeName] = puller
		}
	}
	slices.SortStableFunc(p.next, func(a, b *podState) int { return cmp.Compare(rank(a), rank(b)) })
}

// rank is how pods come to their turns: those that do not serve anyway go first.
func rank(s *podState) int {
	if s.available {
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
func (p *prePull) find(s *podState) outlook {
	missing := p.missing(s)
	if len(missing) == 0 || s.stuck() {
		return outlook{}
	}
	why, skipped, wait := p.without(s)
	if skipped {
		return outlook{skipped: why, again: wait}
	}
	node := s.pod.Spec.NodeName
	if puller := p.current[node]; holds(puller, missing) {
		switch state, message := p.Waiter.tells(puller); state {
		case pullerDone:
			return outlook{again: wait}
		case pullerFailed:
			image := about(missing, message)
			return outlook{lacks: strings.TrimSuffix(awaiting(image, node)+": "+message, ": "), again: wait,
				failure: fmt.Sprintf("Image %s cannot be pulled: %s", image, message)}
		case pullerWorks, pullerRejected:
		}
	}
	return outlook{lacks: awaiting(missing[0], node), again: wait}
}

func awaiting(image, node string) string {
	return fmt.Sprintf("waiting for image %s on node %s", image, node)
}

// tell has the plan say it. The first image that cannot be pulled goes before whatever else is waited for.
func (p *prePull) tell(found outlook, isFirst bool) {
	p.again(found.again)
	p.plan.NotPulled = cmp.Or(p.plan.NotPulled, found.skipped)
	if found.failure != "" && isFirst {
		p.waiting = ""
	}
	if found.failure != "" && !slices.Contains(p.plan.PullFailures, found.failure) {
		p.plan.PullFailures = append(p.plan.PullFailures, found.failure)
	}
	p.waiting = cmp.Or(p.waiting, found.lacks)
}

// stuck: the containers that are to change cannot pull what they have now. An undo always gets through to them.
func (s *podState) stuck() bool {
	for change := range s.needs.NewImages() {
		waiting := containerStatus(s.pod, change.Container).State.Waiting
		if waiting == nil || !cannotPull[waiting.Reason] {
			return false
		}
	}
	return true
}

// missing are the images of which nobody knows whether the node has them, or that the kubelet asks the registry for anyway. A
// node lists only some of its images (--node-status-max-images), so that one which is not listed may be there all the same.
func (p *prePull) missing(s *podState) []string {
	if s.pod.Spec.NodeName == "" {
		return nil // it serves nobody, and pulls when it is scheduled
	}
	var missing []string
	for change := range s.needs.NewImages() {
		image := change.Image.To
		if pullPolicy(s.pod, change) == corev1.PullAlways || !p.present(s.pod.Spec.NodeName, image) {
			missing = append(missing, image)
		}
	}
	return missing
}

// pullPolicy is that of the pod, which no patch changes and for which admission may have chosen another than the template's.
// Defaulted as SetDefaults_Container in pkg/apis/core/v1/defaults.go does.
func pullPolicy(pod *corev1.Pod, change ContainerChange) corev1.PullPolicy {
	for _, c := range pod.Spec.Containers {
		if c.Name == change.Container && c.ImagePullPolicy != "" {
			return c.ImagePullPolicy
		}
	}
	if isLatest(change.Image.To) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// present tells whether the node lists the image, or a pod of the workload runs it there.
func (p *prePull) present(node, image string) bool {
	if slices.ContainsFunc(p.running[node], func(name string) bool { return sameImage(name, image) }) {
		return true
	}
	at := p.nodes[node]
	if at == nil {
		return false
	}
	normal := normalImage(image)
	last := normal[strings.LastIndex(normal, "/")+1:]
	return slices.ContainsFunc(at.Status.Images, func(listed corev1.ContainerImage) bool {
		return slices.ContainsFunc(listed.Names, func(name string) bool {
			return strings.HasSuffix(name, last) && normalImage(name) == normal // the former is quick, there being many
		})
	})
}

// running are the images that certainly run in the pod: told by both its spec and its status.
func running(pod *corev1.Pod) []string {
	var images []string
	for _, c := range pod.Spec.Containers {
		status := containerStatus(pod, c.Name)
		if status.State.Running != nil && status.Ready && sameImage(status.Image, c.Image) {
			images = append(images, c.Image)
		}
	}
	return images
}

// without tells whether nothing can be pulled first on the pod's node, and why; no words where that is no news. If it is only a matter of time,
// of how much.
func (p *prePull) without(s *podState) (why string, skipped bool, wait time.Duration) {
	name := s.pod.Spec.NodeName
	node := p.nodes[name]
	switch room, quota := p.room(); {
	case p.Waiter.Image == "":
		return "Stayput does not know its own image", true, 0
	case p.Refused.Target == p.workload.target && p.Refused.Why != "":
		return p.Refused.Why, true, 0
	case room == 0 && (len(p.Pullers) == 0 || !s.available && p.rests()):
		return quota, true, 0
	case node == nil:
		return "", true, 0 // it is gone, and its pods go
	case !nodeReady(node) && !s.ready():
		return "", true, 0 // the kubelet pulls when it is back; until then the pod is down anyway
	}
	if why := cannotMount(node); why != "" {
		return fmt.Sprintf("node %s: %s", name, why), true, 0
	}
	lingers, gone := p.lingers(name)
	if lingers {
		return fmt.Sprintf("node %s: pod %s has been terminating for too long", name, p.workload.name(name)), true, 0
	}
	why, skipped, wait = p.rejected(node)
	return why, skipped, sooner(gone, wait)
}

// rejected tells whether the node did not take its puller, or cannot start it; if it is only a matter of time, of how much.
func (p *prePull) rejected(node *corev1.Node) (why string, is bool, wait time.Duration) {
	puller := p.current[node.Name]
	if puller == nil {
		return "", false, 0
	}
	state, message := p.Waiter.tells(puller)
	if state == pullerWorks {
		state, message, wait = p.stranded(puller, node)
	}
	if state != pullerRejected {
		return "", false, wait
	}
	return fmt.Sprintf("node %s: %s", node.Name, message), true, 0
}

// lingers tells whether a puller is in the way of the next one although it should be long gone: somebody has given it a finalizer. If it is only
// a matter of time, of how much.
func (p *prePull) lingers(node string) (bool, time.Duration) {
	puller := p.named(node)
	if puller == nil || puller.DeletionTimestamp == nil {
		return false, 0
	}
	return since(puller.DeletionTimestamp.Time, stranding, p.now)
}

// stranding is how long a kubelet may take to give a puller its sandbox and network, or to see it off.
const stranding = time.Minute

// sayingKubelet is the first that says so at once (OnPodSandboxReady in pkg/kubelet/kubelet.go). For others the condition is False for as
// long as they pull.
var sayingKubelet = versions.MustParseGeneric("1.36")

// stranded looks at a puller whose kubelet does not come as far as to pull, since the node has trouble with its network or has no addresses
// left. A pod that is there already may need none of that to restart.
func (p *prePull) stranded(puller *corev1.Pod, node *corev1.Node) (pullerState, string, time.Duration) {
	sandbox := condition(puller, corev1.PodReadyToStartContainers)
	if olderThan(sayingKubelet, node.Status.NodeInfo.KubeletVersion) || sandbox == nil || sandbox.Status != corev1.ConditionFalse {
		return pullerWorks, "", 0
	}
	if over, wait := since(puller.CreationTimestamp.Time, stranding, p.now); !over {
		return pullerWorks, "", wait
	}
	return pullerRejected, fmt.Sprintf("the kubelet cannot start a pod that pulls (%s is False)", corev1.PodReadyToStartContainers), 0
}

// dismissDone deletes the pullers whose work is done: their node's turn is over, or the target is another. Until then they
// keep the images from the kubelet's garbage collection.
func (p *prePull) dismissDone(lacking lacking) {
	needed := map[string]bool{}
	for _, s := range p.pods {
		if s.restarts() || !s.arrived && !s.move.restarted(s.pod) {
			needed[s.pod.Spec.NodeName] = true
		}
	}
	missing := map[string][]string{}
	for _, s := range p.next {
		if !lacking.mayStart(s) {
			missing[s.pod.Spec.NodeName] = append(missing[s.pod.Spec.NodeName], p.missing(s)...)
		}
	}
	for _, puller := range p.Pullers {
		node := puller.Spec.NodeName
		switch {
		case p.current[node] != puller:
			p.delete(puller, "another target")
		case !needed[node]:
			p.delete(puller, "its node's turn is over")
		case !holds(puller, missing[node]):
			p.delete(puller, "it lacks an image")
		}
	}
}

// leave deletes the pullers of an update that is over: as soon as the last containers have started, at once if it went native.
func (p *prePull) leave(native Reasons) {
	if len(native) > 0 {
		p.dismissAll(p.Pullers, native.String())
		return
	}
	p.look()
	p.dismissDone(nil)
}

// dismissAll deletes all pullers.
func (d *draft) dismissAll(pullers []*corev1.Pod, why string) {
	for _, puller := range pullers {
		d.delete(puller, why)
	}
}

func (d *draft) delete(puller *corev1.Pod, why string) {
	if puller.DeletionTimestamp == nil {
		d.step(DeletePuller{Pod: puller, Why: why})
	}
}

// create has the images pulled for the pods whose turns come next. While a node's pods have their turn its puller does not
// count, so that pulling goes on ahead of the restarts. Nor does one that is done, where a pod does not serve: all others may be
// waiting for that pod.
func (p *prePull) create(lacking lacking) {
	room, _ := p.room()
	begun := map[string]bool{}
	for _, s := range p.next {
		node := s.pod.Spec.NodeName
		if lacking.mayStart(s) || begun[node] || p.named(node) != nil {
			continue
		}
		busy := p.ahead
		if !s.available {
			busy = p.behind
		}
		if len(begun) >= min(p.atATime-busy, room) {
			return
		}
		begun[node] = true
		p.step(CreatePuller{Pod: p.puller(s.pod), Target: p.workload.target})
	}
}

// named is the puller that has the name of the node's, though it may be about to go; nil if there is none.
func (p *prePull) named(node string) *corev1.Pod {
	name := p.workload.name(node)
	at := slices.IndexFunc(p.Pullers, func(puller *corev1.Pod) bool { return puller.Name == name })
	if at < 0 {
		return nil
	}
	return p.Pullers[at]
}

// count counts the nodes that pull. Those that did not take their puller, or whose kubelet says nothing, are not among them: nothing is
// pulled there.
func (p *prePull) count() {
	counted := map[string]bool{}
	for _, s := range p.next {
		name := s.pod.Spec.NodeName
		if Closed(s.pod) || counted[name] {
			continue
		}
		counted[name] = true
		state, works := p.works(name)
		if works {
			p.ahead++
		}
		if works && state != pullerDone {
			p.behind++
		}
	}
}

// rests: every puller is done, and stays until its pods have had their turns.
func (p *prePull) rests() bool { return p.behind == 0 && p.ahead == len(p.Pullers) }

// works tells whether the node has a puller and does something about it, and how far that is.
func (p *prePull) works(name string) (pullerState, bool) {
	puller, node := p.current[name], p.nodes[name]
	if puller == nil || node == nil || !nodeReady(node) {
		return pullerWorks, false
	}
	state, _ := p.Waiter.tells(puller)
	return state, state != pullerRejected
}

// puller is the one for the pod's node, with all the images that the pods there will need.
func (p *prePull) puller(of *corev1.Pod) *corev1.Pod {
	var images []volumeImage
	for _, s := range p.next {
		for change := range s.needs.NewImages() {
			image := volumeImage{reference: change.Image.To, policy: pullPolicy(s.pod, change)}
			if s.pod.Spec.NodeName == of.Spec.NodeName && !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
	}
	return newPuller(p.workload, of, images, p.Waiter)
}

// prePull of a Deployment. Its own controller is the Deployment, which takes only ReplicaSets for its own.
func (v *view) prePull() *prePull {
	p := &prePull{draft: &v.draft, Pulling: v.Pull, atATime: v.Settings.PrePullParallelism, nodes: v.nodesByName, now: v.Now,
		pods: slices.Collect(v.states()), reserve: 1 + int(v.Deployment.maxSurge())}
	if v.target != nil {
		p.workload = pullerOfDeployment(v.Deployment, v.target.rs)
		p.next = allToRestart(v.states())
	}
	return p
}

// prePull of a DaemonSet. Pods that go natively, or on nodes that are down, need nothing.
func (v *daemonView) prePull() *prePull {
	p := &prePull{draft: &v.draft, Pulling: v.Pull, atATime: v.Settings.PrePullParallelism, nodes: v.nodesByName, now: v.Now,
		pods: slices.Collect(v.states()), reserve: 1}
	if v.target != nil {
		p.workload = pullerOfDaemonSet(v.DaemonSet, v.target)
		p.next = allToRestart(func(yield func(*podState) bool) {
			for m := range v.pending() {
				if m.needs.InPlace() && v.reachable(m.pod) && !yield(&m.podState) {
					return
				}
			}
		})
	}
	return p
}

// allToRestart are the pods that will need images. A borrowed one is given back as it is: its puller would hold a place for ever.
func allToRestart(pods iter.Seq[*podState]) []*podState {
	var all []*podState
	for s := range pods {
		if s.toRestart() {
			all = append(all, s)
		}
	}
	return all
}

func byName(nodes []*corev1.Node) map[string]*corev1.Node {
	named := map[string]*corev1.Node{}
	for _, node := range nodes {
		named[node.Name] = node
	}
	return named
}
