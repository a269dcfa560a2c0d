package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-openapi/jsonpointer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/internal/observe"
)

// workload is a workload in its namespace. Its own template does not count.
type workload struct {
	kind   observe.Kind
	object apps.Workload
	within metav1.ObjectMeta
}

// String returns the workload as an example names it.
func (w workload) String() string {
	return fmt.Sprintf("%s/%s in %s", strings.ToLower(w.kind.Workload.Name), w.object.GetName(), w.object.GetNamespace())
}

// history has the templates of a workload by the number of their revision.
type history map[int64]apps.Template

// rollout is the step from one revision to the next.
type rollout struct {
	from, to apps.Template
	// revision is the number of the revision to.
	revision int64
}

// rollouts returns the steps between revisions whose numbers follow each other. Where a number is not there, the revision between is gone,
// and what was compared would be several rollouts in one.
func (h history) rollouts() []rollout {
	var all []rollout
	for _, number := range slices.Sorted(maps.Keys(h)) {
		from, known := h[number-1]
		if to := h[number]; known && !apps.SameTemplate(from, to) {
			all = append(all, rollout{from, to, number})
		}
	}
	return all
}

// verdict is what Stayput would have done with a rollout.
type verdict struct {
	// reasons are why it is native as the workload is today; none if it is in place.
	reasons inplace.Reasons
	// settings are those of which each, alone, would make the rollout in place.
	settings []string
}

func (w workload) judge(r rollout) verdict {
	judged := verdict{reasons: w.reasons(r.from, r.to, w.seen(setting{}))}
	for _, trial := range trialsFor(judged.reasons) {
		if len(w.reasons(r.from, r.to, w.seen(trial))) == 0 {
			judged.settings = append(judged.settings, trial.String())
		}
	}
	return judged
}

// seen returns what Stayput would know of the workload if it had that setting too.
func (w workload) seen(with setting) engine.Snapshot {
	namespace := w.within
	if !inplace.NamespaceModes.Has(namespace.Labels[inplace.LabelUpdate]) {
		namespace.Labels = plus(namespace.Labels, inplace.LabelUpdate, string(inplace.ModeInPlace))
	}
	labels, annotations := w.object.GetLabels(), w.object.GetAnnotations()
	switch with.key {
	case "":
	case inplace.LabelUpdate:
		if _, decided := labels[with.key]; !decided { // who opts a workload out knows the setting
			labels = plus(labels, with.key, with.value)
		}
	case inplace.AnnotationResize:
		annotations = plus(annotations, with.key, with.value)
	default: // a list
		before := inplace.InForce(namespace.Annotations, annotations)[with.key]
		annotations = plus(annotations, with.key, strings.Trim(before+","+with.value, ","))
	}
	return engine.Snapshot{Mode: w.kind.ModeOf(&namespace, labels), Settings: inplace.SettingsOf(namespace.Annotations, annotations),
		Rules: inplace.Rules{}.For(inplace.InForce(namespace.Annotations, annotations))}
}

// plus returns a copy of the map with one more entry.
func plus(entries map[string]string, key, value string) map[string]string {
	more := maps.Clone(entries)
	if more == nil {
		more = map[string]string{}
	}
	more[key] = value
	return more
}

// setting is a setting of a workload.
type setting struct{ key, value string }

// String returns the setting as a manifest has it.
func (s setting) String() string { return s.key + ": " + s.value }

// trialsFor returns the settings that could take all of these reasons away. A setting takes away reasons of one kind only.
func trialsFor(reasons inplace.Reasons) []setting {
	codes := slices.DeleteFunc(reasons.Codes(), func(code string) bool { return code == inplace.CodeAnnotationList })
	switch {
	case len(codes) != 1:
		return nil
	case codes[0] == inplace.CodeMode:
		return []setting{{inplace.LabelUpdate, inplace.InPlace}}
	case codes[0] == inplace.CodeResources:
		return []setting{{inplace.AnnotationResize, inplace.InPlace}}
	case codes[0] != inplace.CodeAnnotation:
		return nil
	}
	var all []setting
	for _, list := range []struct {
		key   string
		check func(entry string) error
	}{
		{inplace.AnnotationRestartAnnotations, inplace.CheckRestartAnnotation},
		{inplace.AnnotationInPlaceAnnotations, inplace.CheckAnnotation},
	} {
		if keys := changed(reasons, list.check); len(keys) > 0 {
			all = append(all, setting{list.key, strings.Join(keys, ",")})
		}
	}
	return all
}

// changed returns the keys of the changed annotations that may be in a list; sorted.
func changed(reasons inplace.Reasons, check func(entry string) error) []string {
	var keys []string
	for _, reason := range reasons {
		key := jsonpointer.Unescape(strings.TrimPrefix(reason.Path, annotationsPath))
		if strings.HasPrefix(reason.Path, annotationsPath) && check(key) == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

const annotationsPath = "/metadata/annotations/"

// reasons returns why an edit of the workload from one template to the other is not made in place; none if it is.
func (w workload) reasons(from, to apps.Template, seen engine.Snapshot) inplace.Reasons {
	edited := w.object.DeepCopyObject().(apps.Workload)
	*edited.PodTemplate() = to
	if w.kind.Of == nil {
		return reasonsOfDeployment(edited.(*apps.Deployment), from, seen)
	}
	return reasonsOfRevised(w.kind.Of(edited), from, seen)
}

// reasonsOfDeployment returns why an edit of the Deployment's template is native. It makes two ReplicaSets of the templates, as the
// Deployment controller would.
func reasonsOfDeployment(edited *apps.Deployment, from apps.Template, seen engine.Snapshot) inplace.Reasons {
	before, after := &apps.ReplicaSet{}, &apps.ReplicaSet{}
	before.Name, before.Spec.Template, before.Spec.Replicas = "before", from, ptr.To[int32](1)
	after.Name, after.Spec.Template, after.Spec.Replicas = "after", edited.Spec.Template, ptr.To[int32](0)
	rollout := deployments.Rollout{Deployment: edited, ReplicaSets: []*apps.ReplicaSet{before, after}, Seen: seen}
	return rollout.DecideEdit(from).Reasons
}

// reasonsOfRevised returns why an edit is native, of a workload whose revisions are ControllerRevisions. Without pods, such a workload has
// nothing to decide, so its strategy is asked for besides.
func reasonsOfRevised(edited controllerrevisions.Kind, from apps.Template, seen engine.Snapshot) inplace.Reasons {
	rollout := controllerrevisions.Rollout{Kind: edited, Seen: seen}
	reasons := rollout.DecideEdit(from).Reasons
	if why := rollout.WhyNative(); len(reasons) == 0 && why != nil {
		reasons = inplace.Reasons{*why}
	}
	return reasons
}

// place is where in the template or workload a reason is, without the index of a list and no deeper than four steps: so that the same
// reason in several workloads is counted as one.
func place(reason inplace.Reason) string {
	steps := strings.Split(reason.Path, "/")
	for i, step := range steps {
		if strings.Trim(step, "0123456789") == "" && step != "" {
			steps[i] = "*"
		}
	}
	return strings.Join(steps[:min(len(steps), deepest+1)], "/")
}

const deepest = 4
