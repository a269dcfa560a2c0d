package main

// cause is why goals are missed. The page explains it.
type cause = string

const (
	refusing cause = "refusing"
	ends     cause = "ends"
	planning cause = "planning"
	draining cause = "draining"
	caches   cause = "caches"
	pulling  cause = "pulling" // pre-pull pods come first

	surged    cause = "surged"    // no pod may be unavailable
	billing   cause = "billing"   // what the whole cluster pays
	queueing  cause = "queueing"  // many workloads at once
	admitting cause = "admitting" // CREATE of pods

	saturating cause = "saturating" // the API server uses all processors

	unknown cause = "unknown"
)

// missed is what the page says about missed goals.
type missed struct {
	Goals   map[cause]string // by cause
	Crowded bool             // 3,000 pods were measured
	Largest string           // how long an update of 10,000 pods takes; empty if that was not measured
	// Replaced is how long an update of 20 pods behind a Service takes where surge pods replace; empty if that was not measured.
	Replaced string

	FourEnds                        string
	Four, Twenty, Claim, ClaimFloor measures
	Served, ServedNative            measures // 20 pods behind a Service
	Large, LargeNative              measures // 3,000 pods
	Lingering, LingeringFloor       measures // two pods that take 10 s to stop
}

// measures are figures of one way.
type measures struct{ Seconds, Refused, CPU, Memory string }

func measuresOf(f figures, bench, name string) measures {
	of := func(what string) string { return told(f.value(bench, name, what)) }
	return measures{of(seconds), of(refused), of(milliseconds), of(memory)}
}

// missedIn returns nil if no goal is missed.
func missedIn(f figures) *missed {
	goals := unmet(f)
	if len(goals) == 0 {
		return nil
	}
	large := simulatedDeployment(3000)
	return &missed{
		Goals: goals, Crowded: known(f.value(large, inPlace, seconds)), Largest: took(f, resting(10000), "then updated"),
		Replaced: took(f, twentyServed, replacing), FourEnds: told(endsOfFour(f)),
		Four: measuresOf(f, four, inPlace), Twenty: measuresOf(f, twenty, inPlace),
		Claim: measuresOf(f, claimed, inPlace), ClaimFloor: measuresOf(f, claimed, floor),
		Served: measuresOf(f, twentyServed, inPlace), ServedNative: measuresOf(f, twentyServed, native),
		Large: measuresOf(f, large, inPlace), LargeNative: measuresOf(f, large, native),
		Lingering: measuresOf(f, lingering, inPlace), LingeringFloor: measuresOf(f, lingering, floor),
	}
}

// unmet returns the missed goals, by cause.
func unmet(f figures) map[cause]string {
	all := map[cause]string{}
	for _, g := range goals() {
		if g.verdict(f) != isMissed {
			continue
		}
		for _, why := range g.knownCauses() {
			if all[why] != "" {
				all[why] += " · "
			}
			all[why] += g.what
		}
	}
	return all
}

func (g goal) knownCauses() []cause {
	if len(g.causes) == 0 {
		return []cause{unknown}
	}
	return g.causes
}

// endsOfFour returns the duration of an update of four pods, one at a time, without their own updates.
func endsOfFour(f figures) float64 {
	return f.value(four, inPlace, seconds) - 4*f.value(four, inPlace, step)
}

// took returns how long an update takes; empty if that is not known.
func took(f figures, bench, way string) string {
	long := f.value(bench, way, seconds)
	if !known(long) {
		return ""
	}
	return number(long) + " s"
}
