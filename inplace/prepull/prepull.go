package prepull

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/compat"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Pulling is what was observed about pulling images before containers stop.
type Pulling struct {
	// PrePullPods are the workload's pre-pull pods, terminating ones included.
	PrePullPods []*corev1.Pod
	// WaitImage is what pre-pull pods run.
	WaitImage WaitImage
	// Refused is about an update revision for which the API server refuses pre-pull pods.
	Refused Refused
	// Quotas are the ResourceQuotas of the namespace. They are nil until they have been read: they are read only for a plan that
	// creates pre-pull pods, and that plan is then made again.
	Quotas []corev1.ResourceQuota
}

// Refused is why no pre-pull pod is created for an update revision.
type Refused struct {
	UpdateRevision types.UID
	Why            string
}

// PrePull decides, for one plan, which pods may restart now because their node has the images they need.
type PrePull struct {
	Plan *steps.PlanBuilder
	Pulling
	Workload PodOwner
	// AtATime is on how many nodes images are pulled at the same time before containers stop. Pulls is the same number, or less if a
	// partition holds pods back.
	AtATime, Pulls int
	Nodes          map[string]*corev1.Node
	Now            time.Time
	// Reserve is how many pods a quota must still admit besides pre-pull pods.
	Reserve int
	// Pods are all live pods of the workload. Next are the pods that are to restart, in the order of their turns; if PullsOnly, also those at
	// the partition, whose nodes pull images and keep them.
	Pods, Next []*podstate.State
	PullsOnly  bool
	// Waits reports whether a pod waits for the restarts of other pods, by the order that the user asks for.
	Waits func(*podstate.State) bool
	// current are the pre-pull pods of the update revision, by node.
	current map[string]*corev1.Pod
	// running are the images that pods of the workload run, by node.
	running map[string][]string
	// ahead is the number of nodes with a pre-pull pod on which a pod still waits for its turn. behind is the number of those on which
	// images are still missing, and done the number of those that have all images, and whose pods wait for the restarts of other pods or for
	// the partition.
	ahead, behind, done int
}

// Advance decides for every pod whether its images are on its node, and plans their pulling if they are not.
func (p *PrePull) Advance(paused bool) {
	p.index()
	if p.AtATime == 0 {
		p.Plan.DeletePrePullPods(p.PrePullPods, "pre-pulling is off")
		return
	}
	p.count()
	failed := false
	for _, s := range p.Next {
		found := p.find(s)
		p.tell(s, found, !failed)
		failed = failed || found.failure != ""
		s.Lacks = found.lacks
	}
	if p.PullsOnly {
		p.Plan.Result.Images = p.images()
	}
	p.deleteDone()
	if !paused {
		p.create()
	}
}

// Images counts the nodes of pods that a partition keeps although their images are pulled, for a caller that makes no plan.
func (p *PrePull) Images() steps.Images {
	if !p.PullsOnly {
		return steps.Images{}
	}
	p.index()
	for _, s := range p.Next {
		s.Lacks = p.find(s).lacks
	}
	return p.images()
}

// images counts the nodes of pods that the partition keeps although their images are pulled.
func (p *PrePull) images() steps.Images {
	has, pulling := map[string]bool{}, false
	for _, s := range p.Next {
		if !s.PullsOnly() {
			continue
		}
		node := s.Pod.Spec.NodeName
		before, known := has[node]
		has[node] = p.has(s) && (before || !known)
		pulling = pulling || s.Lacks != ""
	}
	images := steps.Images{Nodes: len(has), Pulling: pulling}
	for _, all := range has {
		if all {
			images.On++
		}
	}
	return images
}

// index sorts the observed pods.
func (p *PrePull) index() {
	p.current, p.running = map[string]*corev1.Pod{}, map[string][]string{}
	for _, s := range p.Pods {
		node := s.Pod.Spec.NodeName
		for c := range edit.EachLiving(&s.Pod.Spec) {
			status := readiness.ContainerStatus(s.Pod, c.Name)
			if status.Ready && edit.SameImage(status.Image, c.Image) { // it certainly runs: kubelets call no other one ready
				p.running[node] = append(p.running[node], c.Image)
			}
		}
	}
	for _, prePullPod := range p.PrePullPods {
		if prePullPod.DeletionTimestamp == nil && prePullPod.Name == p.Workload.Name(prePullPod.Spec.NodeName) {
			p.current[prePullPod.Spec.NodeName] = prePullPod
		}
	}
	slices.SortStableFunc(p.Next, func(a, b *podstate.State) int { return inplace.TrueFirst(!a.Available, !b.Available) })
}

// stuck reports whether the containers that are to change cannot pull their present images. Such a pod does not wait for a pre-pull pod, so
// an undo always reaches it.
func stuck(s *podstate.State) bool {
	for change := range s.Containers.NewImages() {
		waiting := readiness.ContainerStatus(s.Pod, change.Container).State.Waiting
		if waiting == nil || !readiness.CannotPull[waiting.Reason] {
			return false
		}
	}
	return true
}

// result is the result for one pod's images.
type result struct {
	// lacks is what the pod waits for. It is empty if the pod's containers may restart.
	lacks string
	// failure is a sentence about an image that cannot be pulled. It is empty if no failure is known.
	failure string
	// skipped is why the pod does not wait for the images it lacks. It is empty if the user need not be told.
	skipped string
	// again is when to look again although nothing changes.
	again time.Duration
}

// find returns what the pod waits for.
func (p *PrePull) find(s *podstate.State) result {
	missing := p.missing(s)
	if len(missing) == 0 || stuck(s) {
		return result{}
	}
	why, skipped, wait := p.cannotPrePull(s)
	if skipped {
		return result{skipped: why, again: wait}
	}
	node := s.Pod.Spec.NodeName
	if prePullPod := p.current[node]; holds(prePullPod, missing) {
		switch state, message := told(prePullPod); state {
		case podDone:
			return result{again: wait}
		case podFailed:
			at := slices.IndexFunc(missing, func(image string) bool { return mentions(message, image) })
			image := missing[max(0, at)] // if it is about none of them, the first one
			return result{lacks: strings.TrimSuffix(awaiting(image, node)+": "+message, ": "), again: wait,
				failure: fmt.Sprintf("Image %s cannot be pulled: %s", image, message)}
		case podWorks, podRejected:
		}
	}
	return result{lacks: awaiting(missing[0], node), again: wait}
}

func awaiting(image, node string) string {
	return fmt.Sprintf("image %s on node %s", image, node)
}

// tell adds the result to the plan. The first image that cannot be pulled takes precedence over everything else that is waited for.
func (p *PrePull) tell(s *podstate.State, found result, isFirst bool) {
	p.Plan.Again(found.again)
	p.Plan.Result.NotPulled = cmp.Or(p.Plan.Result.NotPulled, found.skipped)
	if found.failure != "" && !slices.Contains(p.Plan.Result.PullFailures, found.failure) {
		p.Plan.Result.PullFailures = append(p.Plan.Result.PullFailures, found.failure)
	}
	wait := steps.Wait{Filter: steps.FilterImages, Pod: s.Pod, Why: found.lacks}
	if p.Plan.Wait(wait); found.failure != "" && isFirst {
		p.Plan.Result.Waits = slices.Insert(p.Plan.Result.Waits, 0, wait)
	}
}

// missing returns the images for which the kubelet may ask the registry when the containers of the pod start.
func (p *PrePull) missing(s *podstate.State) []string {
	if s.Pod.Spec.NodeName == "" {
		return nil // the pod serves no clients, and its kubelet pulls when it is scheduled
	}
	var missing []string
	for change := range s.Containers.NewImages() {
		if pullPolicy(s.Pod, change) == corev1.PullAlways || !p.usable(s, change) {
			missing = append(missing, change.Image.To)
		}
	}
	return missing
}

// pullPolicy returns the pull policy of the pod. No patch changes it, and admission may have chosen another one than the
// template's. The default is that of SetDefaults_Container in pkg/apis/core/v1/defaults.go.
func pullPolicy(pod *corev1.Pod, change edit.ContainerChange) corev1.PullPolicy {
	if c := edit.Named(&pod.Spec, change.Container); c != nil && c.ImagePullPolicy != "" {
		return c.ImagePullPolicy
	}
	if edit.IsLatest(change.Image.To) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// usable reports whether the pod's node is known to have the image, and the pod to be allowed to use it: a pod of the workload runs it
// there, or the container did before it was patched and the node still lists it. A node lists only some of its images
// (--node-status-max-images), so an image that is not listed may be there. A kubelet that does not verify who may use an image only needs
// to have it, under any name.
func (p *PrePull) usable(s *podstate.State, change edit.ContainerChange) bool {
	image, node := change.Image.To, p.Nodes[s.Pod.Spec.NodeName]
	verified := node != nil && compat.VerifiesImages(node.Status.NodeInfo.KubeletVersion)
	written := func(name string) bool { return !verified || edit.Repository(name) == edit.Repository(image) }
	runs := func(name string) bool { return edit.SameImage(name, image) && written(name) }
	switch {
	case change.Restart: // the image runs there, under another name
		return written(change.Image.From)
	case slices.ContainsFunc(p.running[s.Pod.Spec.NodeName], runs):
		return true
	case verified:
		had := s.Move.Containers[change.Container].ImageID
		return had != "" && edit.Repository(had) == edit.Repository(edit.NormalImage(image)) && lists(node, image, had)
	}
	return lists(node, image, "")
}

// lists reports whether the node lists an image with that name, and with that ID unless it is empty.
func lists(node *corev1.Node, image, id string) bool {
	if node == nil {
		return false
	}
	normal := edit.NormalImage(image)
	last := normal[strings.LastIndex(normal, "/")+1:]
	return slices.ContainsFunc(node.Status.Images, func(listed corev1.ContainerImage) bool {
		return slices.ContainsFunc(listed.Names, func(name string) bool {
			return strings.HasSuffix(name, last) && edit.NormalImage(name) == normal // HasSuffix is fast, and nodes list many images
		}) && (id == "" || slices.Contains(listed.Names, id))
	})
}

// has reports whether the pod's images are known to be on its node.
func (p *PrePull) has(s *podstate.State) bool {
	missing, prePullPod := p.missing(s), p.current[s.Pod.Spec.NodeName]
	if len(missing) == 0 || !holds(prePullPod, missing) {
		return len(missing) == 0
	}
	state, _ := told(prePullPod)
	return state == podDone
}

// cannotPrePull reports whether images cannot be pulled in advance on the pod's node, and why. The text is empty if the user need not be
// told. If this changes with time alone, it returns after how much.
func (p *PrePull) cannotPrePull(s *podstate.State) (why string, skipped bool, wait time.Duration) {
	name := s.Pod.Spec.NodeName
	node := p.Nodes[name]
	hasTurn := s.Available && !s.AtPartition
	idle := p.behind == 0 && p.ahead == len(p.PrePullPods) // every pre-pull pod is done, and stays until its node's pods have had their turns
	switch room, quota := p.quotaLeft(); {
	case p.WaitImage.Image == "":
		return "Stayput's own image is unknown", true, 0
	case p.Refused.UpdateRevision == p.Workload.updateRevision && p.Refused.Why != "":
		return p.Refused.Why, true, 0
	case room == 0 && (len(p.PrePullPods) == 0 || !hasTurn && idle):
		return quota, true, 0
	case pullsLater(node, s):
		return "", true, 0
	}
	if why := compat.CannotMount(node); why != "" {
		return fmt.Sprintf("node %s: %s", name, why), true, 0
	}
	stuckTerminating, gone := p.stuckTerminating(name)
	if stuckTerminating {
		return fmt.Sprintf("node %s: pod %s has been terminating for too long", name, p.Workload.Name(name)), true, 0
	}
	why, skipped, wait = p.rejected(node)
	return why, skipped, inplace.Sooner(gone, wait)
}

// pullsLater reports whether the pod's node gets no pre-pull pod now, and the user need not be told.
func pullsLater(node *corev1.Node, s *podstate.State) bool {
	switch {
	case node == nil: // it was deleted, and its pods will be
		return true
	case s.AtPartition && node.Spec.Unschedulable: // a drain may evict the pre-pull pod, and nothing says how long the next one would stay
		return true
	}
	return !readiness.NodeReady(node) && !s.Ready() // the kubelet pulls when it reports again; until then the pod is not available anyway
}

// rejected reports whether the node did not accept its pre-pull pod, or cannot start it. If this changes with time alone, it
// returns after how much.
func (p *PrePull) rejected(node *corev1.Node) (why string, is bool, wait time.Duration) {
	prePullPod := p.current[node.Name]
	if prePullPod == nil {
		return "", false, 0
	}
	state, message := told(prePullPod)
	if state == podWorks {
		state, message, wait = p.cannotStart(prePullPod, node)
	}
	if state != podRejected {
		return "", false, wait
	}
	return fmt.Sprintf("node %s: %s", node.Name, message), true, 0
}

// stuckTerminating reports whether a pre-pull pod blocks the next one although it should have been deleted long ago: another client has
// given it a finalizer. If this changes with time alone, it returns after how much.
func (p *PrePull) stuckTerminating(node string) (bool, time.Duration) {
	prePullPod := p.named(node)
	if prePullPod == nil || prePullPod.DeletionTimestamp == nil {
		return false, 0
	}
	return inplace.Since(prePullPod.DeletionTimestamp.Time, startTimeout, p.Now)
}

// startTimeout is how long a kubelet may take to give a pre-pull pod its sandbox and network, or to finish its deletion.
const startTimeout = time.Minute

// cannotStart returns the state of a pre-pull pod whose kubelet does not get as far as pulling, because the node has network problems
// or no free addresses. A pod that already runs there may need neither to restart.
func (p *PrePull) cannotStart(prePullPod *corev1.Pod, node *corev1.Node) (podState, string, time.Duration) {
	sandbox := apps.Condition(prePullPod, corev1.PodReadyToStartContainers)
	if !compat.ReportsSandbox(node.Status.NodeInfo.KubeletVersion) || sandbox == nil || sandbox.Status != corev1.ConditionFalse {
		return podWorks, "", 0
	}
	if over, wait := inplace.Since(prePullPod.CreationTimestamp.Time, startTimeout, p.Now); !over {
		return podWorks, "", wait
	}
	return podRejected, fmt.Sprintf("the kubelet cannot start a pre-pull pod (%s is False)", corev1.PodReadyToStartContainers), 0
}

// deleteDone deletes the pre-pull pods that are no longer needed: the turn of their node is over, or the update revision is another
// one. Until then they protect the images from the kubelet's garbage collection.
func (p *PrePull) deleteDone() {
	needed := map[string]bool{}
	for _, s := range p.Pods {
		toRestart := s.Restarts() && (!s.AtPartition || p.PullsOnly)
		restarting := !s.Applied && !s.Move.Restarted(s.Pod)
		if toRestart || restarting {
			needed[s.Pod.Spec.NodeName] = true
		}
	}
	missing := map[string][]string{}
	for _, s := range p.Next {
		if !s.MayStart() {
			missing[s.Pod.Spec.NodeName] = append(missing[s.Pod.Spec.NodeName], p.missing(s)...)
		}
	}
	for _, prePullPod := range p.PrePullPods {
		node := prePullPod.Spec.NodeName
		switch {
		case p.current[node] != prePullPod:
			p.Plan.Delete(prePullPod, "another update revision")
		case !needed[node]:
			p.Plan.Delete(prePullPod, "the pods on its node have had their turn")
		case !holds(prePullPod, missing[node]):
			p.Plan.Delete(prePullPod, "it does not pull all images")
		}
	}
}

// Finish deletes the pre-pull pods of an update that has ended: as soon as the last containers have started, or at once if the
// update fell back to the native controller.
func (p *PrePull) Finish(native inplace.Reasons) {
	if len(native) > 0 {
		p.Plan.DeletePrePullPods(p.PrePullPods, native.String())
		return
	}
	p.index()
	p.deleteDone()
}

// create plans pre-pull pods for the pods whose turns come next. While the pods of a node have their turn, the node's pre-pull pod
// does not count, so pulling continues ahead of the restarts. Nor does a finished pre-pull pod if its pod may be waiting for the one that
// lacks images: any pod may wait for a pod that is not available, and some wait for those that go before them. At a partition no pod has
// its turn.
func (p *PrePull) create() {
	room, _ := p.quotaLeft()
	begun := map[string]bool{}
	for _, s := range p.Next {
		node := s.Pod.Spec.NodeName
		if s.MayStart() || begun[node] || p.named(node) != nil {
			continue
		}
		busy := p.ahead
		switch {
		case !s.Available, s.AtPartition:
			busy = p.behind
		case !p.Waits(s):
			busy -= p.done
		}
		if len(begun) >= min(p.Pulls-busy, room) {
			return
		}
		begun[node] = true
		p.Plan.Step(steps.CreatePrePullPod{Pod: p.prePullPod(s.Pod), UpdateRevision: p.Workload.updateRevision})
	}
}

// named returns the pre-pull pod with the name for that node, even if it is terminating. It is nil if there is none.
func (p *PrePull) named(node string) *corev1.Pod {
	name := p.Workload.Name(node)
	at := slices.IndexFunc(p.PrePullPods, func(prePullPod *corev1.Pod) bool { return prePullPod.Name == name })
	if at < 0 {
		return nil
	}
	return p.PrePullPods[at]
}

// count counts the nodes that pull. Nodes that did not accept their pre-pull pod, or that are not ready, do not count: nothing is
// pulled there.
func (p *PrePull) count() {
	counted := map[string]bool{}
	for _, s := range p.Next {
		name := s.Pod.Spec.NodeName
		if readiness.Out(s.Pod) || counted[name] {
			continue
		}
		counted[name] = true
		state, works := p.works(name)
		if works {
			p.ahead++
		}
		switch {
		case !works:
		case state != podDone:
			p.behind++
		case s.AtPartition, s.Available && p.Waits(s):
			p.done++
		}
	}
}

// works reports whether the node has a pre-pull pod and acts on it. It also returns the pod's state.
func (p *PrePull) works(name string) (podState, bool) {
	prePullPod, node := p.current[name], p.Nodes[name]
	if prePullPod == nil || node == nil || !readiness.NodeReady(node) {
		return podWorks, false
	}
	state, _ := told(prePullPod)
	return state, state != podRejected
}

// prePullPod returns the pre-pull pod for the pod's node, with all images that pods there will need.
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
	return NewPod(p.Workload, of, images, p.WaitImage)
}

// AllToRestart returns the pods that will need images; if pullsOnly, also those at the partition. Surge pods are not among them: a surge
// pod is removed as it is, and its pre-pull pod would take up a place for ever.
func AllToRestart(pods []*podstate.State, pullsOnly bool) []*podstate.State {
	return slices.DeleteFunc(slices.Clone(pods), func(s *podstate.State) bool {
		return !s.ToRestart() && !(pullsOnly && s.PullsOnly())
	})
}
