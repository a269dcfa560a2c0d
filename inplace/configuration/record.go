package configuration

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
)

// Record has the versions of sources, by source, as in "configmap/web-config". The version of an object that does not exist is empty.
type Record map[string]string

// RecordOf returns the Record on a workload; nil if there is none that can be read. Any client may have written it.
func RecordOf(workload metav1.Object) Record {
	var record Record
	if err := json.Unmarshal([]byte(workload.GetAnnotations()[inplace.AnnotationConfiguration]), &record); err != nil {
		return nil
	}
	delete(record, restarts)
	return record
}

// with returns the text of the Record and the Pace in the annotation.
func (r Record) with(pace Pace) string {
	both := Record{}
	maps.Copy(both, r)
	if said := pace.String(); said != "" {
		both[restarts] = said
	}
	return both.String()
}

// String returns the text of the Record alone.
func (r Record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // a map of texts has a form in JSON
	}
	return string(text)
}

// changedFrom returns the sources that are in both Records with different versions, sorted. One that is gone is left out: containers that
// run have what it said, and may not be able to start without it. When it is there again, it has changed.
func (r Record) changedFrom(before Record) []string {
	var changed []string
	for _, source := range slices.Sorted(maps.Keys(r)) {
		if version, had := before[source]; had && r[source] != "" && version != r[source] {
			changed = append(changed, source)
		}
	}
	return changed
}
