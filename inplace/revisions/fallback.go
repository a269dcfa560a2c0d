package revisions

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/times"
)

// Fallbacks are the releases on record: the data of a ConfigMap, one for each workload, by UID. The value is the time in Unix seconds, the hash of the
// template and the code of the reason.
type Fallbacks map[string]string

// Fallback is one of them; the zero Record is none.
type Fallback struct{ Hash, Code string }

// Unwritable reports whether the update was given back because our writes are not taken. Then a gate might never open.
func (r Fallback) Unwritable() bool {
	return r.Code == inplace.CodeRefused || r.Code == inplace.CodeFailing
}

// MaxFallbacks keeps them well within the 1 MiB of a ConfigMap; the oldest give way.
const MaxFallbacks = 1000

// Of is the record of a workload.
func (r Fallbacks) Of(workload types.UID) Fallback {
	_, value, _ := strings.Cut(r[string(workload)], " ")
	hash, code, _ := strings.Cut(value, " ")
	return Fallback{hash, code}
}

// Add puts a release on record.
func (r Fallbacks) Add(workload types.UID, fallback Fallback, now time.Time) {
	r[string(workload)] = times.Seconds(now) + " " + fallback.Hash + " " + fallback.Code
	oldest := slices.SortedFunc(maps.Keys(r), func(a, b string) int { return strings.Compare(r[a], r[b]) })
	for _, workload := range oldest[:max(0, len(r)-MaxFallbacks)] {
		delete(r, workload)
	}
}

// Remove ends the records of workloads.
func (r Fallbacks) Remove(workloads ...types.UID) {
	for _, workload := range workloads {
		delete(r, string(workload))
	}
}
