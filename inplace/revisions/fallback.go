package revisions

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
)

// Fallbacks are the persisted fallbacks: the data of a ConfigMap, with one entry for each workload, by UID. The value is the time in Unix
// seconds, the hash of the template and the code of the reason.
type Fallbacks map[string]string

// Fallback is one persisted fallback; the zero Fallback is none.
type Fallback struct{ Hash, Code string }

// Unwritable reports whether the update fell back because Stayput's writes are refused or fail. Then a gate might never open.
func (r Fallback) Unwritable() bool {
	return r.Code == inplace.CodeRefused || r.Code == inplace.CodeFailing
}

// NudgesFail reports whether nudges by a label on the revision with these labels seem to be refused or to fail.
func (r Fallback) NudgesFail(labels map[string]string, every time.Duration, now time.Time) bool {
	return r.Unwritable() && now.Sub(inplace.ParseTime(labels[inplace.LabelRenewed])) >= 2*every
}

// MaxFallbacks keeps them well within the 1 MiB of a ConfigMap; the oldest are dropped.
const MaxFallbacks = 5000

// Of returns the persisted fallback of a workload.
func (r Fallbacks) Of(workload types.UID) Fallback {
	_, value, _ := strings.Cut(r[string(workload)], " ")
	hash, code, _ := strings.Cut(value, " ")
	return Fallback{hash, code}
}

// Add adds the persisted fallback of a workload.
func (r Fallbacks) Add(workload types.UID, fallback Fallback, now time.Time) {
	r[string(workload)] = inplace.FormatTime(now) + " " + fallback.Hash + " " + fallback.Code
	oldest := slices.SortedFunc(maps.Keys(r), func(a, b string) int { return strings.Compare(r[a], r[b]) })
	for _, workload := range oldest[:max(0, len(r)-MaxFallbacks)] {
		delete(r, workload)
	}
}

// Remove removes the persisted fallbacks of workloads.
func (r Fallbacks) Remove(workloads ...types.UID) {
	for _, workload := range workloads {
		delete(r, string(workload))
	}
}
