package edit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// TestChangeOfContainersHasWhatVariablesRead: a write that restarts containers must have the labels and annotations that they read.
func TestChangeOfContainersHasWhatVariablesRead(t *testing.T) {
	base := edits{"/spec/containers/0/env": readsLabel, "/spec/containers/1/env": readsNote}
	after := edits{version: `"2"`, "/metadata/labels/more": `""`, "/metadata/annotations/note": "", "/metadata/annotations/other": `"1"`}
	change := Compare(edited(t, base), edited(t, base, after), inplace.Rules{Annotations: []string{"note", "other"}})
	if got := change.VariablesRead; got != "variables read label version (app), annotation note (proxy)" {
		t.Errorf("said is %q", got)
	}
	part := change.OfContainers()
	if got := part.String(); got != "in place: restarts app, proxy" {
		t.Errorf("the part of containers: %s", got)
	}
	labels, annotations := []patches.EntryChange{{Key: "version", Value: "2"}}, []patches.EntryChange{{Key: "note", Removing: true}}
	if !slices.Equal(part.Labels, labels) || !slices.Equal(part.Annotations, annotations) {
		t.Errorf("the part of containers has labels %v and annotations %v", part.Labels, part.Annotations)
	}
	if len(change.Labels) != 2 || len(change.Annotations) != 2 {
		t.Errorf("the change has labels %v and annotations %v", change.Labels, change.Annotations)
	}
}

// TestVariablesReadNothing: labels that only volumes or other containers' variables read are not among those that come with a restart.
func TestVariablesReadNothing(t *testing.T) {
	base := edits{"/spec/containers/0/env": readsLabel}
	for name, after := range map[string]edits{
		"an image":      {newImage: `"app:2"`},
		"another label": {"/metadata/labels/more": `""`},
	} {
		if change := Compare(edited(t, base), edited(t, base, after), inplace.Rules{}); !change.Read.None() || change.VariablesRead != "" {
			t.Errorf("%s: %v, %q", name, change.Read, change.VariablesRead)
		}
	}
}

// TestReading: the containers that read a key restart as well as those that change.
func TestReading(t *testing.T) {
	reading := func(name, field string) corev1.Container {
		return corev1.Container{Name: name, Env: []corev1.EnvVar{{Name: "V"}, {Name: "W", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}}}}
	}
	template := []corev1.Container{reading("app", "metadata.labels['a']"), reading("side", "metadata.annotations['a']"),
		reading("mesh", "metadata.name")}
	image := ContainerChange{Container: "app", Image: ImageChange{From: "app:1", To: "app:2"}}
	both := image
	both.Restart = true
	for _, test := range []struct {
		keys ReadKeys
		want ContainerChanges
	}{
		{ReadKeys{}, ContainerChanges{image}},
		{ReadKeys{Labels: []string{"b", "name"}}, ContainerChanges{image}},
		{ReadKeys{Labels: []string{"z", "a"}}, ContainerChanges{both}},
		{ReadKeys{Annotations: []string{"a"}}, ContainerChanges{image, {Container: "side", Restart: true}}},
	} {
		if got := (ContainerChanges{image}).Reading(template, test.keys); !slices.Equal(got, test.want) {
			t.Errorf("%v: %+v, want %+v", test.keys, got, test.want)
		}
	}
}

// TestTooManyRead: the mark of a pod names the keys, so their number is bounded.
func TestTooManyRead(t *testing.T) {
	for count, want := range map[int]string{
		mostRead:     "in place: restarts app",
		mostRead + 1: "recreate: 21 labels and annotations that variables read change, more than 20",
	} {
		var env []string
		labels := edits{}
		for i := range count {
			env = append(env, fmt.Sprintf(`{"name": "V%d", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['k%d']"}}}`, i, i))
			labels[fmt.Sprintf("/metadata/labels/k%d", i)] = `"1"`
		}
		base := edits{"/spec/containers/0/env": "[" + strings.Join(env, ",") + "]"}
		if got := Compare(edited(t, base), edited(t, base, labels), inplace.Rules{}).String(); got != want {
			t.Errorf("%d keys: %s, want %s", count, got, want)
		}
	}
}

// TestJoined: of two changes of one key, the own one counts.
func TestJoined(t *testing.T) {
	own, others := []patches.EntryChange{{Key: "a", Value: "1"}}, []patches.EntryChange{{Key: "a", Value: "2"}, {Key: "b", Value: "2"}}
	if got, want := joined(others, own), []patches.EntryChange{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
