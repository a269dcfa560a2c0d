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

// Records are the releases on record: annotations of the Lease, one for each workload, by UID. The value is the time in Unix seconds, the
// hash of the template and the code of the reason.
type Records map[string]string

// Record is one of them; the zero Record is none.
type Record struct{ Hash, Code string }

// Unwritable tells whether the update was given back because our writes are not taken. Then a gate might never open.
func (r Record) Unwritable() bool {
	return r.Code == inplace.CodeRefused || r.Code == inplace.CodeFailing
}

const (
	// recordPrefix begins the annotations of the Lease that keep on record which updates were given back; behind it stands the workload's UID.
	recordPrefix = "released.stayput.dev/"
	// MaxRecords keeps them well within the 256 KiB that annotations may have; the oldest give way.
	MaxRecords = 1000
)

// Of is the record of a workload.
func (r Records) Of(workload types.UID) Record {
	_, value, _ := strings.Cut(r[recordPrefix+string(workload)], " ")
	hash, code, _ := strings.Cut(value, " ")
	return Record{hash, code}
}

// Add puts a release on record.
func (r Records) Add(workload types.UID, record Record, now time.Time) {
	r[recordPrefix+string(workload)] = times.Seconds(now) + " " + record.Hash + " " + record.Code
	records := slices.DeleteFunc(slices.Collect(maps.Keys(r)), func(key string) bool { return !strings.HasPrefix(key, recordPrefix) })
	slices.SortFunc(records, func(a, b string) int { return strings.Compare(r[a], r[b]) })
	for _, key := range records[:max(0, len(records)-MaxRecords)] {
		delete(r, key)
	}
}

// Remove ends the record of a workload.
func (r Records) Remove(workload types.UID) { delete(r, recordPrefix+string(workload)) }
