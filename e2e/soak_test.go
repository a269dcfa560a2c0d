//go:build e2e && bench && soak

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/stayput/stayput/e2e/load"
)

const (
	soakBeat = 20 * time.Second // an edit
	soakKill = 30               // beats between two kills of a manager
	soakFlap = 45               // beats from the end of a node's outage to the next
	flapping = 6                // beats of an outage
	soakRate = 20               // requests a second
	// soakGrowth is how much larger a figure of the last quarter of the time may be than in the second.
	soakGrowth = 1.2
)

// TestSoak updates a fleet for MINUTES, one workload every 20 s, while managers are killed and nodes go away: 100 Deployments, 20
// StatefulSets and 10 DaemonSets, most of them of simulated pods. Every rollout has to end without a mark of Stayput, what the managers use
// must not grow, and a Service must not lose more requests than one whose Deployment is edited natively at the same moments.
func TestSoak(t *testing.T) {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	f := newSoak(t)
	for ends := time.Now().Add(time.Duration(numberOf(t, "MINUTES", 360)) * time.Minute); time.Now().Before(ends); f.beat++ {
		next := time.Now().Add(soakBeat)
		f.edit()
		f.disturb()
		f.send()
		f.sample()
		time.Sleep(time.Until(next))
	}
	f.backAgain()
	f.endsWell()
}

// soak is the fleet.
type soak struct {
	inPlace, native *scenario
	*testing.T
	names   []string
	served  []*served
	beat    int
	away    string // the node whose kubelet is stopped
	samples []map[string]float64
}

// served is a Service that gets requests. A load ends after ten minutes, so another takes over before.
type served struct {
	url        string
	now        *load.Load
	sent, lost int
}

func newSoak(t *testing.T) *soak {
	roomFor(t, 600)
	f := &soak{T: t, inPlace: unjudged(t, asShipped(stateful)), native: unjudged(t, unlabelled)}
	for i := range 130 {
		kind := 0 // a Deployment
		switch {
		case i >= 120:
			kind = 1 // a DaemonSet
		case i >= 100:
			kind = 2 + i%2 // a StatefulSet of each policy
		}
		name := fmt.Sprintf("app-%03d", i)
		options := []option{named(name), realistic}
		if i%20 != 0 { // the others are real
			options = append(options, simulatedOnly)
		}
		f.names = append(f.names, f.inPlace.submitOne(kind, name, options))
	}
	for _, s := range []*scenario{f.inPlace, f.native} {
		s.create(web(3, realistic))
		f.served = append(f.served, &served{url: s.expose("web")})
	}
	f.rolledOut()
	return f
}

// edit gives the next workload the next image. Every tenth edit is of the Deployments that get requests, in place and natively.
func (f *soak) edit() {
	f.Helper()
	others := f.beat - f.beat/10
	name, round := f.names[others%len(f.names)], others/len(f.names)
	if f.beat%10 == 9 {
		name, round = "web", f.beat/10
	}
	image := appImage(fmt.Sprintf("v%d", 2+round%8))
	try := func(s *scenario) {
		err := pollFor(f.Context(), patience, func(ctx context.Context) error { return s.tryImage(ctx, name, image) })
		if err != nil {
			f.Errorf("edit %d: %v", f.beat, err)
		}
	}
	try(f.inPlace)
	if name == "web" {
		try(f.native)
	}
}

// disturb kills one manager and then the other, every ten minutes, and stops a kubelet for two minutes every quarter of an hour.
func (f *soak) disturb() {
	f.Helper()
	if f.beat%soakKill == soakKill-1 {
		processes := f.inPlace.managerProcesses()
		kill(f.inPlace, processes[f.beat/soakKill%len(processes)])
	}
	switch f.beat % soakFlap {
	case soakFlap - flapping:
		nodes := f.inPlace.realNodes()
		f.away = nodes[f.beat/soakFlap%len(nodes)]
		component(f.T, "stop", "kubelet-"+f.away)
	case 0:
		f.backAgain()
	}
}

func (f *soak) backAgain() {
	if f.away != "" {
		startKubelet(f.T, f.away)
		f.away = ""
	}
}

// send renews the loads every five minutes.
func (f *soak) send() {
	if f.beat%15 != 0 {
		return
	}
	for _, s := range f.served {
		s.renew(f.Context())
	}
}

// sample notes what the managers use, once a minute. One that has just been killed cannot be asked.
func (f *soak) sample() {
	f.Helper()
	if f.beat%3 != 0 {
		return
	}
	all, err := metricsOf(f.Context())
	if err != nil {
		return
	}
	sampled := map[string]float64{"MiB of anonymous memory": quantile(anonymousOf(managerCommand), 1)}
	for name, metric := range map[string]string{"goroutines": "go_goroutines", "connections and files": "process_open_fds"} {
		sampled[name] = quantile(valuesOf(all, metric), 1)
	}
	sampled["bytes of ConfigMaps and Leases"], err = f.stored()
	if err == nil {
		f.samples = append(f.samples, sampled)
	}
	if f.beat%30 == 0 {
		fmt.Printf("%s: after %d edits %v, lost %d of %d and natively %d of %d\n", time.Now().Format(time.TimeOnly), f.beat, sampled,
			f.served[0].lost, f.served[0].sent, f.served[1].lost, f.served[1].sent)
	}
}

// stored returns the size of the ConfigMaps and Leases of the managers.
func (f *soak) stored() (bytes float64, err error) {
	maps, err := clients.CoreV1().ConfigMaps(ownNamespace).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	leases, err := clients.CoordinationV1().Leases(ownNamespace).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return float64(maps.Size() + leases.Size()), nil
}

// renew starts another load before it ends the one that there is.
func (s *served) renew(ctx context.Context) {
	before := s.now
	s.now = load.Start(ctx, s.url, soakRate)
	s.end(before)
}

func (s *served) end(l *load.Load) {
	if l == nil {
		return
	}
	count := l.End()
	s.sent, s.lost = s.sent+count.Sent, s.lost+count.Lost
}

// endsWell waits until every rollout has ended, and compares the end with the beginning.
func (f *soak) endsWell() {
	f.Helper()
	f.rolledOut()
	for _, s := range f.served {
		s.end(s.now)
	}
	inPlace, native := f.served[0], f.served[1]
	f.Logf("%d edits; lost %d of %d requests, natively %d of %d", f.beat, inPlace.lost, inPlace.sent, native.lost, native.sent)
	if inPlace.lost > native.lost {
		f.Error("more were lost than natively")
	}
	quarter := len(f.samples) / 4
	if quarter == 0 {
		f.Fatal("MINUTES is too short for four samples")
	}
	for name := range f.samples[0] {
		figure := func(sample map[string]float64) float64 { return sample[name] }
		second := quantile(each(f.samples[quarter:2*quarter], figure), 0.5)
		last := quantile(each(f.samples[3*quarter:], figure), 0.5)
		f.Logf("%s: %.4g in the second quarter, %.4g in the last", name, second, last)
		if last > second*soakGrowth {
			f.Errorf("%s: it grows", name)
		}
	}
}

// rolledOut waits until every workload is rolled out and bears no mark of Stayput.
func (f *soak) rolledOut() {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), crowdPatience)
	defer cancel()
	names := append([]string{"web"}, f.names...)
	err := f.inPlace.recorder.until(ctx, func(w world) error { return w.rolledOut(names, true) })
	if err != nil {
		f.Fatalf("not all rollouts have ended: %v", err)
	}
}
