package revisions

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
)

// Fallbacks are the persisted fallbacks: the data of a ConfigMap, with one entry for each workload, by UID. The value is the time in Unix
// seconds, the hash of the template, the code of the reason and the namespace.
type Fallbacks map[string]string

// Fallback is one persisted fallback; the zero Fallback is none.
type Fallback struct{ Hash, Code string }

// NudgesFail reports whether nudges by a label on the revision with these labels seem to be refused or to fail.
func (r Fallback) NudgesFail(labels map[string]string, every time.Duration, now time.Time) bool {
	unwritable := r.Code == inplace.CodeRefused || r.Code == inplace.CodeFailing
	return unwritable && now.Sub(inplace.ParseTime(labels[inplace.LabelRenewed])) >= 2*every
}

// MaxFallbacks keeps them well within the 1 MiB of a ConfigMap. Beyond that, the oldest of the namespace with the most are dropped, so that
// no namespace pushes out those of others.
const MaxFallbacks = 5000

// Of returns the persisted fallback of a workload.
func (r Fallbacks) Of(workload types.UID) Fallback {
	fallback, _ := parsed(r[string(workload)])
	return fallback
}

// parsed returns the fallback and its namespace.
func parsed(value string) (fallback Fallback, namespace string) {
	_, value, _ = strings.Cut(value, " ")
	hash, value, _ := strings.Cut(value, " ")
	code, namespace, _ := strings.Cut(value, " ")
	return Fallback{hash, code}, namespace
}

// Add adds the persisted fallback of a workload.
func (r Fallbacks) Add(workload metav1.Object, fallback Fallback, now time.Time) {
	r[string(workload.GetUID())] = strings.Join([]string{inplace.FormatTime(now), fallback.Hash, fallback.Code, workload.GetNamespace()}, " ")
	for len(r) > MaxFallbacks {
		delete(r, r.first())
	}
}

// first returns the workload whose fallback is dropped first.
func (r Fallbacks) first() string {
	namespaces, count := map[string]string{}, map[string]int{}
	for workload, value := range r {
		_, namespaces[workload] = parsed(value)
		count[namespaces[workload]]++
	}
	return slices.MinFunc(slices.Collect(maps.Keys(r)), func(a, b string) int {
		return cmp.Or(count[namespaces[b]]-count[namespaces[a]], strings.Compare(r[a], r[b]))
	})
}

// Remove removes the persisted fallback of a workload.
func (r Fallbacks) Remove(workload types.UID) { delete(r, string(workload)) }
