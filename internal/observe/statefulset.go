package observe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/statefulsets"
)

// StatefulSets is the kind whose revisions are ControllerRevisions, and which is updated in place on request only.
var StatefulSets = revised(
	Kind{
		Workload: typeOf("StatefulSet", func() client.ObjectList { return &apps.StatefulSetList{} },
			func(_ *apps.StatefulSet, form metav1.ObjectMeta) *apps.StatefulSet {
				return &apps.StatefulSet{ObjectMeta: form}
			}),
		Scaled:  true,
		optedIn: func(settings inplace.Settings) bool { return settings.StatefulSets },
	},
	statefulsets.Of, func(s *apps.StatefulSet) *metav1.LabelSelector { return s.Spec.Selector })
