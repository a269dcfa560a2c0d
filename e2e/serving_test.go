//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/e2e/load"
)

const loadRate = 200 // requests a second

// serving is an update under load: the workload, its labels, and the rules for its pods.
type serving struct {
	name     string
	strategy string // for the table
	labels   map[string]string
	rules    Rules
	workload any // *appsv1.Deployment, *appsv1.DaemonSet or *appsv1.StatefulSet
	brief    bool
	older    bool // the pods are older than the namespace's label
}

func servings() []serving {
	half, zeroTwo := rolling("50%", "25%"), rolling("0", "2")
	all := []serving{
		{name: "6 replicas", strategy: "default", labels: labelled, rules: inPlace, workload: web(6, realistic), brief: true},
		{name: "6 replicas, preStop", strategy: "default, preStop 1s", labels: labelled, rules: inPlace, workload: web(6, realistic, preStop)},
		{name: "6 replicas, half at a time", strategy: "maxUnavailable 50%", labels: labelled, rules: inPlace,
			workload: web(6, realistic, half)},
		{name: "6 replicas, half at a time, preStop", strategy: "maxUnavailable 50%, preStop 1s", labels: labelled, rules: inPlace,
			workload: web(6, realistic, preStop, half)},
		{name: "6 replicas, half at a time, slow", strategy: "maxUnavailable 50%, start 2s, stop 1s", labels: labelled, rules: inPlace,
			workload: web(6, takes("2s", "1s"), half)},
		{name: "6 replicas, older than the label", strategy: "default", rules: inPlace, workload: web(6, realistic), older: true},
		{name: "1 replica, with a surge pod", strategy: "default", labels: surging, rules: surge(1), workload: web(1, realistic), brief: true},
		{name: "2 replicas, with a surge pod", strategy: "default", labels: surging, rules: surge(1), workload: web(2, realistic)},
		{name: "3 replicas, with a surge pod", strategy: "default", labels: surging, rules: surge(1), workload: web(3, realistic)},
		{name: "4 replicas, with 2 surge pods", strategy: "maxUnavailable 0, maxSurge 2", labels: surging, rules: surge(2),
			workload: web(4, realistic, zeroTwo)},
		{name: "DaemonSet", strategy: "maxUnavailable 1", labels: labelled, rules: inPlace, workload: agent(templated(realistic))},
		{name: "DaemonSet, preStop", strategy: "maxUnavailable 1, preStop 1s", labels: labelled, rules: inPlace,
			workload: agent(templated(realistic), templated(preStop))},
	}
	for policy, option := range policies {
		all = append(all,
			serving{name: "StatefulSet, " + policy, strategy: "3 replicas", labels: stateful, rules: inPlace,
				workload: db(3, option, ofTemplate(realistic))},
			serving{name: "StatefulSet, " + policy + ", preStop", strategy: "3 replicas, preStop 1s", labels: stateful, rules: inPlace,
				workload: db(3, option, ofTemplate(realistic), ofTemplate(preStop))})
	}
	return all
}

// realistic makes the application start as slowly as one that loads data first.
func realistic(d *appsv1.Deployment) { takes("700ms", "")(d) }

// takes sets how long the application needs to listen, and how long it serves after it is told to stop.
func takes(start, stop string) option {
	return func(d *appsv1.Deployment) {
		app := &d.Spec.Template.Spec.Containers[0]
		app.Env = append(app.Env, corev1.EnvVar{Name: "START_DELAY", Value: start}, corev1.EnvVar{Name: "STOP_DELAY", Value: stop})
	}
}

// preStop makes the container serve for a second before it is told to stop, as is usual natively.
func preStop(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
		PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}},
	}
}

// TestServing updates under load, one scenario after another, because the load needs the machine. No request may be lost. With -short it
// runs one scenario in place, one with surge pods, and that of the last endpoint.
func TestServing(t *testing.T) {
	var rows []string
	t.Run("the last endpoint", func(t *testing.T) { rows = append(rows, lastEndpointServes(t)) })
	for _, scenario := range servings() {
		t.Run(scenario.name, func(t *testing.T) {
			if testing.Short() && !scenario.brief {
				t.Skip("time is short")
			}
			rows = append(rows, scenario.run(t))
		})
	}
	if len(rows) > 0 {
		t.Logf("updates under load:\n%-36s %-38s %8s %6s %8s\n%s", "replicas", "strategy", "sent", "lost", "seconds",
			strings.Join(rows, "\n"))
	}
}

// run returns a row of the table.
func (of serving) run(t *testing.T) string {
	s := newScenario(t, asShipped(of.labels))
	name := s.deploy(of.workload)
	if of.older {
		s.label(updateLabel + "=in-place")
		s.managed(name)
	}
	before := s.pods(name)
	l := s.load(s.expose(name))
	s.begin("under load", of.rules)
	from := time.Now()
	s.setImage(name, "app=v2")
	s.completes(name)
	seconds := time.Since(from).Seconds()
	count := s.unload(l)
	s.kept(name, before, once)
	if count.Lost > 0 {
		t.Errorf("requests were lost: the update began %.2fs after the load: %s", from.Sub(l.Started).Seconds(), count)
	}
	if count.Versions["v1"]+count.Versions["v2"] != count.OK || count.Versions["v2"] == 0 {
		t.Errorf("not answered by v1 and then v2: %s", count)
	}
	return rowOfLoad(t, of.name, of.strategy, count, seconds)
}

func rowOfLoad(t *testing.T, name, strategy string, count load.Traffic, seconds float64) string {
	row := fmt.Sprintf("%-36s %-38s %8d %6d %8.1f", name, strategy, count.Sent, count.Lost, seconds)
	t.Log(row)
	return row
}

// lastEndpointServes updates the only pod of a Service, whose container sleeps for some seconds before it stops. No request may be lost
// before it has stopped, and until then the Service offers the pod. Afterwards nothing can answer until the new container does.
func lastEndpointServes(t *testing.T) string {
	s := newScenario(t, asShipped(labelled))
	s.create(web(1, realistic, sleepingFor(preStopSleep)))
	l := s.load(s.expose("web"))
	s.offered("web")
	pod, before, since := s.onlyPod("web"), s.pods("web"), lastVersion(s)
	s.begin("under load", inPlace)
	from := time.Now()
	s.setImage("web", "app=v2")
	s.completes("web")
	seconds := time.Since(from).Seconds()
	count := s.unload(l)
	s.kept("web", before, once)
	s.servedUntilStopped(pod, since)
	// A container's times are whole seconds.
	stopped := s.onlyPod("web").Status.ContainerStatuses[0].LastTerminationState.Terminated.FinishedAt.Time
	if first := count.FirstLost; !first.IsZero() && first.Before(stopped.Add(-time.Second)) {
		t.Errorf("a request was lost %s before the container stopped at %s: %s", stopped.Sub(first), stopped, count)
	}
	if slept := stopped.Sub(from); slept < preStopSleep-time.Second {
		t.Errorf("the container stopped %s after the edit, and should have slept for %s", slept, preStopSleep)
	}
	return rowOfLoad(t, "1 replica, the last endpoint", "default, preStop "+preStopSleep.String(), count, seconds)
}

// servedUntilStopped replays the events since that version, and checks that the Service of the pod offered it until its container stopped.
func (s *scenario) servedUntilStopped(was *corev1.Pod, since uint64) {
	s.Helper()
	w, patched := newWorld(), false
	for _, e := range s.recorder.inOrder() {
		w.apply(e)
		pod := w.pods[was.UID]
		if e.version <= since || pod == nil {
			continue
		}
		if !stillRuns(was, pod) {
			if !patched {
				s.Errorf("the container of pod %s stopped before its patch", pod.Name)
			}
			return
		}
		patched = patched || !maps.Equal(imagesOf(was.Spec), imagesOf(pod.Spec))
		if err := inService(w, pod); err != nil {
			s.Errorf("the container of pod %s has not stopped, and at version %d it %v", pod.Name, e.version, err)
			return
		}
	}
	s.Errorf("the container of pod %s has not stopped", was.Name)
}

// deploy creates a workload of any kind, waits until it is rolled out, and returns its name.
func (s *scenario) deploy(object any) string {
	s.Helper()
	switch of := object.(type) {
	case *appsv1.Deployment:
		s.create(of)
		return of.Name
	case *appsv1.DaemonSet:
		s.install(of)
		return daemonSetPrefix + of.Name
	case *appsv1.StatefulSet:
		s.submitStatefulSet(of)
		s.completes(called(of))
		return called(of)
	}
	s.Fatalf("%T is no workload", object)
	return ""
}

// expose creates a Service for a workload and returns its URL, once it answers. The nodes of the test cluster are this machine, so its
// Services can be reached from here.
func (s *scenario) expose(name string) string {
	s.Helper()
	url := "http://" + s.service(name, corev1.ServiceInternalTrafficPolicyCluster).Spec.ClusterIP
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	s.eventually("an answer of "+url, func(context.Context) error {
		_, err := load.Ask(client, url)
		return err
	})
	return url
}

// service creates a Service for a workload.
func (s *scenario) service(name string, traffic corev1.ServiceInternalTrafficPolicy) *corev1.Service {
	s.Helper()
	app := name[strings.LastIndex(name, "/")+1:]
	created, err := clients.CoreV1().Services(s.namespace).Create(s.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: corev1.ServiceSpec{
			Selector:              map[string]string{"app": app},
			Ports:                 []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
			InternalTrafficPolicy: &traffic,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatalf("creating Service %s: %v", app, err)
	}
	return created
}

// load starts requests, and returns when they arrive at the full rate.
func (s *scenario) load(url string) *load.Load {
	s.Helper()
	l := load.Start(s.Context(), url, loadRate)
	s.Cleanup(func() { l.End() })
	s.eventually("a second of load", func(context.Context) error {
		if count := l.SoFar(); count.Sent < loadRate {
			return errors.New(count.String())
		}
		return nil
	})
	return l
}

// unload continues for as long as kube-proxy may need to follow, and then stops.
func (s *scenario) unload(l *load.Load) load.Traffic {
	s.Helper()
	time.Sleep(2 * time.Second)
	return l.End()
}
