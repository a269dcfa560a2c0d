package statefulsets_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// claimed gives the StatefulSet a claim template, and the pod, unless it is nil, a volume of the claim.
func claimed(m *fixture.Members, pod *corev1.Pod, claim string) {
	m.StatefulSet.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	if pod != nil {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
}

// TestAPodWithoutAClaimIsNotUpdated: a StatefulSet that was created anew over orphaned pods may have another claim template. Natively no
// pod counts as updated that does not have its volume, and no running pod can get one.
func TestAPodWithoutAClaimIsNotUpdated(t *testing.T) {
	own := func(volume *corev1.Volume) { volume.Name = "mine" }
	scratch := func(volume *corev1.Volume) { volume.PersistentVolumeClaim = nil }
	for name, test := range map[string]struct {
		claims map[int]string
		change func(*corev1.Volume) // of each pod
		want   map[int]string
	}{
		"none has it":          {nil, nil, map[int]string{0: "v1", 1: "v1"}},
		"all have it":          {map[int]string{0: "data-db-0", 1: "data-db-1"}, nil, map[int]string{0: "v2", 1: "v2"}},
		"one was created anew": {map[int]string{1: "data-db-1"}, nil, map[int]string{0: "v1", 1: "v2"}},
		"another claim":        {map[int]string{0: "data-db-0", 1: "data-db-0"}, nil, map[int]string{0: "v1", 1: "v1"}},
		"a volume of another name with that claim": {
			map[int]string{0: "data-db-0", 1: "data-db-1"}, own, map[int]string{0: "v1", 1: "v1"}},
		"a volume of that name without a claim": {
			map[int]string{0: "data-db-0", 1: "data-db-1"}, scratch, map[int]string{0: "v1", 1: "v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 2)
			claimed(m, nil, "")
			for ordinal, claim := range test.claims {
				claimed(m, m.Member(ordinal), claim)
				if test.change != nil {
					test.change(&m.Member(ordinal).Spec.Volumes[0])
				}
			}
			m.Edit(fixture.App{Image: "v2"})
			m.Rest()
			for ordinal, want := range test.want {
				pod := m.Member(ordinal)
				updated := pod.Labels[inplace.LabelRevisionHash] == m.Of().UpdateRevision().Name
				if got := pod.Spec.Containers[0].Image; got != want || updated != (want == "v2") {
					t.Errorf("%s has image %s and counts as updated %t; want %s", pod.Name, got, updated, want)
				}
			}
		})
	}
}

// TestAPodWithoutAClaimIsNative: the decision says why, and nothing is held.
func TestAPodWithoutAClaimIsNative(t *testing.T) {
	m := fixture.NewMembers(t, 1)
	claimed(m, nil, "")
	m.Edit(fixture.App{Image: "v2"})
	decision := m.Of().Decision()
	if codes := decision.Reasons.Codes(); decision.Held || len(codes) != 1 || codes[0] != inplace.CodeClaim {
		t.Errorf("the decision is %+v", decision)
	}
	if held, why := m.Of().HoldsDeletion(m.Member(0)); held || why.Code != inplace.CodeClaim {
		t.Errorf("held %t: %+v", held, why)
	}
}

// TestVolumesOfANewPod: the pod of the dry run has the claims of its ordinal, and otherwise the volumes of its template. A claim takes the
// place of a volume of the same name. With both, the API server would refuse the pod, and the update would be native for no reason.
func TestVolumesOfANewPod(t *testing.T) {
	for name, test := range map[string]struct {
		volumes string
		claims  bool
		want    []string
	}{
		"claims and other volumes": {
			`,"volumes":[{"name":"data","emptyDir":{}},{"name":"tmp","emptyDir":{}}]`, true, []string{"data-db-1", "tmp"}},
		"no claims":                     {`,"volumes":[{"name":"data","emptyDir":{}}]`, false, []string{"data"}},
		"only claims":                   {``, true, []string{"data-db-1"}},
		"neither claims nor any volume": {``, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 2)
			if test.claims {
				claimed(m, nil, "")
			}
			template := `{"spec":{"containers":[{"name":"app","image":"v2"}]` + test.volumes + `}}`
			if err := json.Unmarshal([]byte(template), &m.StatefulSet.Spec.Template); err != nil {
				t.Fatal(err)
			}
			var made corev1.Pod
			if err := json.Unmarshal(m.Kind.NewPod(m.Of().Revisions[0], m.Member(1)), &made); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, volume := range made.Spec.Volumes {
				if claim := volume.PersistentVolumeClaim; claim != nil {
					volume.Name = claim.ClaimName
				}
				got = append(got, volume.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("its volumes are %q, want %q", got, test.want)
			}
		})
	}
}
