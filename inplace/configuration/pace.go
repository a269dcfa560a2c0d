package configuration

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
)

// Pace is when containers last restarted, and for how long they do not restart again if something changes. It is on the workload, beside
// the Record, so that a new leader goes on with it.
type Pace struct {
	Restarted time.Time
	Apart     time.Duration
}

// restarts is where the annotation has the Pace, among the sources, each of which has a "/".
const restarts = "restarts"

// String returns the text of the Pace in the annotation; empty for the zero Pace.
func (p Pace) String() string {
	if p.Apart == 0 {
		return ""
	}
	return p.Restarted.UTC().Format(time.RFC3339) + " " + p.Apart.String()
}

// PaceOf returns the Pace on a workload; the zero Pace if there is none that can be read. Any client may have written it.
func PaceOf(workload metav1.Object) Pace {
	var noted map[string]string
	if err := json.Unmarshal([]byte(workload.GetAnnotations()[inplace.AnnotationConfiguration]), &noted); err != nil {
		return Pace{}
	}
	at, long, _ := strings.Cut(noted[restarts], " ")
	restarted, atErr := time.Parse(time.RFC3339, at)
	apart, err := time.ParseDuration(long)
	if atErr != nil || err != nil {
		return Pace{}
	}
	return Pace{Restarted: restarted, Apart: apart}
}
