package steps

import (
	"github.com/stayput/stayput/inplace"
)

// NativeVerdict of a workload that the mode does not manage.
func NativeVerdict(m inplace.Mode) Verdict { return Verdict{Reasons: inplace.Reasons{*m.Reason()}} }

// NativePlan for one on which nothing of ours is left.
func NativePlan(m inplace.Mode) Plan {
	return Plan{Verdict: NativeVerdict(m), Phase: PhaseNative, Message: m.Reason().Message}
}
