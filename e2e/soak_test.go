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
	// soakEdits are made whatever MINUTES says: an edit every 20 s for six hours.
	soakEdits   = 1080
	soakKill    = 30              // edits between two kills of a manager
	soakFlap    = 45              // edits from one outage of a node to the next
	soakOutage  = 2 * time.Minute // a node is NotReady after 40 s
	soakRenewal = 5 * time.Minute // of the loads
	soakRate    = 20              // requests a second
	// soakGrowth is how much larger a figure of the last quarter of the time may be than in the second.
	soakGrowth = 1.2
)

// TestSoak updates a fleet 1,080 times, one workload after the other, while managers are killed 36 times and 24 times a node goes away: 100
// Deployments, 20 StatefulSets and 10 DaemonSets, most of them of simulated pods. Every rollout has to end without a mark of Stayput, what
// the managers use must not grow, and a Service must not lose more requests than one whose Deployment is edited natively at the same
// moments. MINUTES is how long that takes; without it six hours.
func TestSoak(t *testing.T) {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	f := newSoak(t)
	f.every = time.Duration(numberOf(t, "MINUTES", 360)) * time.Minute / soakEdits
	for began := time.Now(); f.beat < soakEdits; f.beat++ {
		f.edit()
		f.disturb()
		f.send()
		f.sample()
		time.Sleep(time.Until(began.Add(time.Duration(f.beat+1) * f.every)))
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
	every   time.Duration // from one edit to the next
	beat    int           // edits that have been made
	away    string        // the node whose kubelet is stopped
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

// beats returns how many edits are made in this time, at least one.
func (f *soak) beats(of time.Duration) int {
	return max(1, int(of/f.every))
}

// disturb kills managers, and stops one kubelet after the other.
func (f *soak) disturb() {
	f.Helper()
	if f.beat%soakKill == soakKill-1 {
		f.killManager(f.beat / soakKill)
	}
	switch f.beat % soakFlap {
	case max(1, soakFlap-f.beats(soakOutage)):
		nodes := f.inPlace.realNodes()
		f.away = nodes[f.beat/soakFlap%len(nodes)]
		component(f.T, "stop", "kubelet-"+f.away)
	case 0:
		f.backAgain()
	}
}

// killManager kills one of the managers. Then it deletes the pod, because after each kill a kubelet waits longer before it starts the
// container again.
func (f *soak) killManager(which int) {
	f.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(f.Context(), managers)
	if err != nil || len(pods.Items) == 0 {
		f.Fatalf("%d managers: %v", len(pods.Items), err)
	}
	pod := &pods.Items[which%len(pods.Items)]
	if process := managerProcess(f.inPlace, pod); process != 0 {
		kill(f.inPlace, process)
	}
	if err := clients.CoreV1().Pods(ownNamespace).Delete(f.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		f.Fatal(err)
	}
}

func (f *soak) backAgain() {
	if f.away != "" {
		startKubelet(f.T, f.away)
		f.away = ""
	}
}

// send renews the loads, which end after ten minutes.
func (f *soak) send() {
	if f.beat%f.beats(soakRenewal) != 0 {
		return
	}
	for _, s := range f.served {
		s.renew(f.Context())
	}
}

// sample notes what the managers use, once a minute. One that has just been killed cannot be asked.
func (f *soak) sample() {
	f.Helper()
	if f.beat%f.beats(time.Minute) != 0 {
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
	if len(f.samples)%10 == 0 {
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
		f.Fatal("there are not even four samples")
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
