//go:build e2e && bench

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/e2e/load"
)

const (
	// strangers is the number of foreign connections to each manager. They stay for strangersFor in all, in turns of strangersTurn.
	strangers     = 10
	strangersFor  = time.Minute
	strangersTurn = 10 * time.Second
)

// benchStrangers has a user edit a Deployment while connections announce large bodies to the managers, and without such connections, in
// turns. The edits are dry runs, which the webhooks answer like other edits.
func benchStrangers(t *testing.T) {
	s := newScenario(t, inPlaceOnly)
	s.create(web(2))
	managers := webhookAddresses(t)
	without, beside := editing{}, editing{}
	began := 0
	for range int(strangersFor / strangersTurn) {
		ctx, end := context.WithTimeout(t.Context(), strangersTurn)
		without.until(ctx, s)
		end()
		ctx, end = context.WithTimeout(t.Context(), strangersTurn)
		done := make(chan int)
		go func() { done <- load.Strangers(ctx, managers, strangers) }()
		beside.until(ctx, s)
		began += <-done
		end()
	}
	fmt.Printf("%d requests were begun by strangers\n", began)
	present(t, fmt.Sprintf("edits beside %d connections that announce bodies", strangers),
		[]column{without.column("no stranger"), beside.column("strangers")})
}

// editing is the outcome of edits: how long each took, in seconds, and the errors.
type editing struct {
	seconds []float64
	failed  []error
}

// until makes one edit after another until ctx ends.
func (e *editing) until(ctx context.Context, s *scenario) {
	for round := 0; ctx.Err() == nil; round++ {
		change := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"labels":{"round":"%d"}}}}}`, round)
		from := time.Now()
		_, err := clients.AppsV1().Deployments(s.namespace).Patch(ctx, "web", types.StrategicMergePatchType, change,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return
		}
		e.seconds = append(e.seconds, time.Since(from).Seconds())
		if err != nil {
			e.failed = append(e.failed, err)
			fmt.Println("an edit failed:", err)
		}
	}
}

func (e *editing) column(name string) column {
	return column{name: name, figures: []figure{
		{"edits", float64(len(e.seconds))},
		{"failed edits", float64(len(e.failed))},
		{"seconds, median", quantile(e.seconds, 0.5)},
		{"seconds, 99 of 100", quantile(e.seconds, 0.99)},
		{"seconds, longest", slices.Max(e.seconds)},
	}}
}
