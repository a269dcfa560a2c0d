//go:build e2e && bench

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	overloaded      = 50 // threads that always have work, unless LOAD says otherwise
	overloadedAtOne = 4  // Deployments that are edited at once, beside one workload of each other kind
	// overloadPatience is the time for one update.
	overloadPatience = 10 * time.Minute
)

// benchOverload edits workloads of all kinds at once on a machine that has far too much to do, natively and in place, in turns. Everything
// is slow then: the API server, the webhooks' answers, renewals of the Lease.
func benchOverload(t *testing.T) {
	load, rounds := int(numberOf(t, "LOAD", overloaded)), roundsOr(t, benchRounds)
	t.Run("images", warmAll)
	ways := []*strained{newStrained(t, "native", unlabelled), newStrained(t, "in place", asShipped(surging))}
	defer func() {
		var all []column
		for _, way := range ways {
			all = append(all, way.column())
		}
		present(t, fmt.Sprintf("%d runnable threads", load), all)
	}()
	for _, way := range ways {
		way.fill()
	}
	burden(t, load)
	for round := range rounds {
		for _, way := range ways {
			fmt.Printf("round %d of %d: %d workloads beside %d runnable threads, %s\n", round+1, rounds, len(way.sides), load, way.way)
			way.update(nextImage(round))
		}
	}
}

// strained are workloads of all kinds that are edited at once.
type strained struct {
	*testing.T
	way     string
	sides   []*side
	updates []strainedUpdate
	refused []float64 // writes, for each pod and round
	elected float64
	silent  float64 // calls of webhooks that were not answered
}

// strainedUpdate is an update of one workload.
type strainedUpdate struct {
	edit, seconds float64 // milliseconds of the request, and seconds until rolled out
	failed        bool    // the request
	kept, pods    int
}

func newStrained(t *testing.T, way string, labels map[string]string) *strained {
	t.Helper()
	s := &strained{T: t, way: way}
	for range overloadedAtOne + len(policies) + 1 {
		scenario := unjudged(t, with(labels, kindsLabel, everyKind))
		s.sides = append(s.sides, &side{way: way, scenario: scenario})
	}
	return s
}

// fill creates a DaemonSet, a StatefulSet of each policy, and Deployments.
func (s *strained) fill() {
	rest := s.sides
	next := func(object any) {
		rest[0].name = rest[0].deploy(object)
		rest = rest[1:]
	}
	next(agent())
	for _, policy := range policies {
		next(db(3, policy))
	}
	for range overloadedAtOne {
		next(web(3))
	}
}

// update edits all workloads at once, and waits until all are rolled out.
func (s *strained) update(e podEdit) {
	s.Helper()
	before, elections, silent := s.counters()
	updates := make([]strainedUpdate, len(s.sides))
	var group errgroup.Group
	for i, each := range s.sides {
		group.Go(func() (err error) {
			updates[i], err = each.strain(e)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
	after, elected, unanswered := s.counters()
	pods := 0
	for _, u := range updates {
		pods += u.pods
	}
	s.updates = append(s.updates, updates...)
	s.refused = append(s.refused, (after.refused-before.refused)/float64(pods))
	s.elected, s.silent = s.elected+elected-elections, s.silent+unanswered-silent
}

// counters returns the API server's writes, how often a leader was elected, and how many calls of webhooks had no answer.
func (s *strained) counters() (writes counters, elections, unanswered float64) {
	s.Helper()
	server, err := serverMetrics(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if writes, err = writesOf(server); err != nil {
		s.Fatal(err)
	}
	lease, err := clients.CoordinationV1().Leases(ownNamespace).Get(s.Context(), ownName, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	unanswered = sum(valuesOf([]scraped{server}, "apiserver_admission_webhook_fail_open_count"))
	return writes, float64(*lease.Spec.LeaseTransitions), unanswered
}

// strain edits the workload, waits until it is rolled out, and tells which pods are still there. A request that fails is sent again.
func (s *side) strain(e podEdit) (u strainedUpdate, err error) {
	ctx, cancel := context.WithTimeout(s.Context(), overloadPatience)
	defer cancel()
	before := map[types.UID]bool{}
	for _, pod := range s.workload(s.name).pods {
		before[pod.UID] = true
	}
	from := time.Now()
	generation, err := s.patchTemplate(e)
	u.edit = milliseconds(time.Since(from))
	for err != nil && ctx.Err() == nil {
		fmt.Printf("%s: the edit failed: %v\n", s.name, err)
		u.failed = true
		generation, err = s.patchTemplate(e)
	}
	if err != nil {
		return u, err
	}
	if err := s.recorder.until(ctx, func(w world) error { return toldSo(w, s.name, generation) }); err != nil {
		return u, fmt.Errorf("%s of %s is not rolled out after %s: %w", s.name, s.namespace, overloadPatience, err)
	}
	u.seconds, u.pods = time.Since(from).Seconds(), len(before)
	for _, pod := range s.workload(s.name).pods {
		if before[pod.UID] {
			u.kept++
		}
	}
	fmt.Printf("%s: %s: %d of %d pods kept, %.0f s, edit %.0f ms\n", s.way, s.name, u.kept, u.pods, u.seconds, u.edit)
	return u, nil
}

func (s *strained) column() column {
	value := func(of func(strainedUpdate) float64, q float64) float64 { return quantile(each(s.updates, of), q) }
	share := func(is func(strainedUpdate) bool) float64 {
		count := 0.0
		for _, u := range s.updates {
			if is(u) {
				count++
			}
		}
		return 100 * count / float64(len(s.updates))
	}
	return column{name: s.way, figures: []figure{
		{"updates", float64(len(s.updates))},
		{"% of them in the same pods", share(func(u strainedUpdate) bool { return u.kept == u.pods })},
		{"seconds until rolled out, p50", value(func(u strainedUpdate) float64 { return u.seconds }, 0.5)},
		{"seconds until rolled out, max", value(func(u strainedUpdate) float64 { return u.seconds }, 1)},
		{"milliseconds of an edit, p50", value(func(u strainedUpdate) float64 { return u.edit }, 0.5)},
		{"milliseconds of an edit, max", value(func(u strainedUpdate) float64 { return u.edit }, 1)},
		{"% of edits that failed at first", share(func(u strainedUpdate) bool { return u.failed })},
		{"API writes per pod, refused", quantile(s.refused, 0.5)},
		{"leaders elected", s.elected},
		{"calls of webhooks without an answer", s.silent},
	}}
}
