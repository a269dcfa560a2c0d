//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// spared permits no effect on any pod.
var spared = Rules{Created: none, Deleted: none, AllAvailable: true}

// pulled checks that images are on the nodes before containers stop. The judge checks that no pre-pull pod outlives its update, runs what
// it pulls, or is counted by a workload.
func pulled(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"once on each node":             pulledOnce,
		"quota without room":            pulledWithoutRoom,
		"nothing but pulled, DaemonSet": pulledOnly,
		"missing image, undo": func(t *testing.T) {
			s := newScenario(t, labelled)
			s.create(web(3, progressDeadline(15)))
			s.missing("web", recoverByUndo)
		},
	})
	nightly(t, map[string]func(*testing.T){
		"missing image of a DaemonSet, push": func(t *testing.T) {
			s := newDaemonScenario(t, labelled)
			s.install(agent())
			s.missing(agents, recoverByPush)
		},
	})
}

// missing updates to an image that does not exist. It checks that no pod is affected and that users are told, and that the update continues
// by itself after recovers.
func (s *scenario) missing(name string, recovers func(s *scenario, name, tag string) Count) {
	s.Helper()
	before, tag := s.pods(name), s.unique()
	s.begin("missing", spared)
	s.setImage(name, "app="+tag)
	s.tells(name, appImage(tag), "not found")
	if !isDaemonSet(name) {
		s.stalls(name)
		s.expectIn(progressing(s.deployment(name)).Message, "not found")
	} else {
		s.refused("rollout", "status", name, "--timeout=5s")
	}
	s.kept(name, before, nil)
	s.statusCountsAll(name)
	expected := recovers(s, name, tag)
	s.completes(name)
	s.kept(name, before, restarts{"app": expected})
}

// stalls waits for the progress deadline, and checks that users are told of it.
func (s *scenario) stalls(name string) {
	s.Helper()
	s.wait("the progress deadline", on(name, func(_ world, d *appsv1.Deployment) error {
		condition := progressing(d)
		if condition == nil || condition.Status != "False" || condition.Reason != "ProgressDeadlineExceeded" {
			return errors.New(describeDeployment(d))
		}
		return nil
	}))
	s.reported("Deployment", "InPlaceUpdateStalled")
	s.expectIn(s.refused("rollout", "status", ref(name), "--timeout=1m"), "exceeded its progress deadline")
}

// recoverByPush returns how often containers restart afterwards.
func recoverByPush(s *scenario, _, tag string) Count {
	s.begin("pushed", inPlace)
	s.publish("v2", tag)
	return exactly(1)
}

func recoverByUndo(s *scenario, name, _ string) Count {
	s.rollout("undo", name)
	return none
}

// unique returns a tag that no node and no registry has.
func (s *scenario) unique() string { return "e2e-" + strconv.FormatInt(time.Now().UnixNano(), 36) }

// publish makes a copy of an image of the test application that differs only in its ID, through the registry's HTTP API
// (github.com/opencontainers/distribution-spec).
func (s *scenario) publish(tag, as string) {
	s.Helper()
	manifests, blobs := "http://"+registry+"v2/app/manifests/", "http://"+registry+"v2/app/blobs/"
	content, kind := s.exchange(http.MethodGet, manifests+tag, nil, "")
	var manifest struct {
		SchemaVersion int            `json:"schemaVersion"`
		MediaType     string         `json:"mediaType"`
		Config        map[string]any `json:"config"`
		Layers        []any          `json:"layers"`
	}
	s.decode(content, &manifest)
	config, _ := s.exchange(http.MethodGet, blobs+fmt.Sprint(manifest.Config["digest"]), nil, "")
	var image map[string]any
	s.decode(config, &image)
	image["author"] = as
	config = s.encode(image)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(config))
	s.exchange(http.MethodPost, blobs+"uploads/?digest="+digest, config, "application/octet-stream")
	manifest.Config["digest"], manifest.Config["size"] = digest, len(config)
	s.exchange(http.MethodPut, manifests+as, s.encode(manifest), kind)
}

func (s *scenario) encode(object any) []byte {
	s.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		s.Fatal(err)
	}
	return content
}

func (s *scenario) decode(content []byte, into any) {
	s.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		s.Fatal(err)
	}
}

// exchange sends content of a media type to the registry, and returns the answer.
func (s *scenario) exchange(method, url string, content []byte, kind string) (body []byte, contentType string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, url, bytes.NewReader(content))
	if err != nil {
		s.Fatal(err)
	}
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		s.Fatalf("%s %s: %s: %s (%v)", method, url, response.Status, body, err)
	}
	return body, response.Header.Get("Content-Type")
}

// newImage returns the tag of an image of the test application that no node has under this name.
func (s *scenario) newImage() string {
	s.Helper()
	tag := s.unique()
	s.publish("v2", tag)
	return tag
}

// tells waits for an event on the workload whose message has all these parts.
func (s *scenario) tells(name string, parts ...string) {
	s.Helper()
	s.eventually(fmt.Sprintf("an event on %s with %q", name, parts), func(ctx context.Context) error {
		events, err := s.eventsOn(ctx, name)
		if err != nil {
			return err
		}
		var messages []string
		for _, e := range events {
			if containsAll(e.Message, parts) {
				return nil
			}
			messages = append(messages, e.Message)
		}
		return fmt.Errorf("there are only %q", messages)
	})
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// eventsOn returns the Kubernetes events about a workload.
func (s *scenario) eventsOn(ctx context.Context, name string) ([]corev1.Event, error) {
	kind, short := "Deployment", name
	switch {
	case isDaemonSet(name):
		kind, short = "DaemonSet", strings.TrimPrefix(name, daemonSetPrefix)
	case strings.HasPrefix(name, statefulSetPrefix):
		kind, short = "StatefulSet", strings.TrimPrefix(name, statefulSetPrefix)
	}
	found, err := clients.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + short,
	})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// statusCountsAll checks that the native status counts every pod as available, now and at any time since the update began.
func (s *scenario) statusCountsAll(name string) {
	s.Helper()
	generation := s.workload(name).GetGeneration()
	if ever(s.recorder, func(d *appsv1.Deployment) bool {
		return isNamed(d, name) && d.Status.ObservedGeneration >= generation && d.Status.UnavailableReplicas > 0
	}) {
		s.Errorf("the status of %s has said that pods are unavailable", name)
	}
	if ever(s.recorder, func(ds *appsv1.DaemonSet) bool {
		return isNamed(ds, name) && ds.Status.ObservedGeneration >= generation && ds.Status.NumberUnavailable > 0
	}) {
		s.Errorf("the status of %s has said that pods are unavailable", name)
	}
}

// pulledOnce checks that there is one pre-pull pod for each node, however many pods of the workload are on it.
func pulledOnce(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(6))
	nodes := map[string]int{}
	for _, pod := range s.pods("web") {
		nodes[pod.Spec.NodeName] = 1
	}
	s.inPlace("web", once, func() { s.setImage("web", "app="+s.newImage()) })
	pulledOn := map[string]int{}
	for _, prePullPod := range s.prePullPods() {
		pulledOn[prePullPod.Spec.NodeName]++
	}
	if !maps.Equal(pulledOn, nodes) {
		t.Errorf("pre-pull pods on nodes %v, pods are on %v", pulledOn, nodes)
	}
}

// prePullPods returns all pre-pull pods that have existed, in their last states.
func (s *scenario) prePullPods() map[types.UID]*corev1.Pod {
	all := map[types.UID]*corev1.Pod{}
	for _, e := range s.recorder.inOrder() {
		if pod, ok := e.object.(*corev1.Pod); ok && pulls(pod) {
			all[pod.UID] = pod
		}
	}
	return all
}

// pulledOnly checks that every node pulls at a partition that keeps all pods, that nothing restarts, and that users can count the nodes.
// When the partition is removed, no node pulls again.
func pulledOnly(t *testing.T) {
	s := newDaemonScenario(t, labelled)
	s.install(agent())
	before, nodes := s.pods(agents), map[string]bool{}
	for _, pod := range before {
		nodes[pod.Spec.NodeName] = true
	}
	s.repartition(agents, "100%")
	s.begin("pulling", spared)
	s.setImage(agents, "app="+s.newImage())
	counted := fmt.Sprintf("new images on %d of %d nodes", len(nodes), len(nodes))
	s.tells(agents, fmt.Sprintf("waiting at partition 100%%: 0 of %d pods updated; %s", len(before), counted))
	s.answers("", 0, []string{fmt.Sprintf("%d at the partition; %s", len(before), counted)}, "status", ref(agents))
	s.kept(agents, before, nil)
	s.statusCountsAll(agents)
	s.begin("lowered", inPlace)
	s.repartition(agents, "")
	s.completes(agents)
	s.kept(agents, before, once)
	pulledOn := map[string]bool{}
	for _, prePullPod := range s.prePullPods() {
		if pulledOn[prePullPod.Spec.NodeName] {
			s.Errorf("node %s had two pre-pull pods", prePullPod.Spec.NodeName)
		}
		pulledOn[prePullPod.Spec.NodeName] = true
	}
	if !maps.Equal(pulledOn, nodes) {
		s.Errorf("pre-pull pods on nodes %v, pods are on %v", pulledOn, nodes)
	}
}

// pulledWithoutRoom checks that a quota without capacity for another pod prevents the pre-pull, but not the update.
func pulledWithoutRoom(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3))
	s.limitPods(3)
	s.inPlace("web", once, func() { s.setImage("web", "app="+s.newImage()) })
	if prePullPods := s.prePullPods(); len(prePullPods) > 0 {
		t.Errorf("%d pre-pull pods got past the quota", len(prePullPods))
	}
	s.reported("Deployment", "DryRunSkipped")
	s.reported("Deployment", "PrePullSkipped")
	events, err := s.eventsOn(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if times := timesOf(events, "PrePullSkipped"); times != 1 {
		t.Errorf("PrePullSkipped was said %d times", times)
	}
}

// timesOf counts the events of this reason, including those that the event recorder has aggregated.
func timesOf(events []corev1.Event, reason string) int {
	times := 0
	for _, e := range events {
		switch {
		case e.Reason != reason:
		case e.Series != nil:
			times += int(e.Series.Count)
		default:
			times += max(1, int(e.Count))
		}
	}
	return times
}
