package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// leaving is a cluster whose managers end some time after they were scaled to 0.
type leaving struct {
	client.WithWatch
	did      []string
	pods     int // managers that still run
	lasting  time.Duration
	goneAt   time.Time
	notFound bool // whether everything that would be deleted is gone
	refuse   error
}

func newLeaving(t *testing.T, l *leaving) *leaving {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	l.WithWatch = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		SubResourcePatch: func(
			_ context.Context, _ client.Client, resource string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
		) error {
			data, err := patch.Data(object)
			l.did = append(l.did, fmt.Sprintf("%s %s %s", resource, client.ObjectKeyFromObject(object), data))
			l.goneAt = time.Now().Add(l.lasting)
			return errors.Join(err, l.absent(object))
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if pods, is := list.(*corev1.PodList); is && time.Now().Before(l.goneAt) {
				pods.Items = make([]corev1.Pod, l.pods)
				return nil
			}
			l.did = append(l.did, fmt.Sprintf("%T", list))
			return nil
		},
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			l.did = append(l.did, object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName())
			return errors.Join(l.refuse, l.absent(object))
		},
	})
	return l
}

func (l *leaving) absent(object client.Object) error {
	if !l.notFound {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, object.GetName())
}

func (l *leaving) uninstall(t *testing.T) error {
	t.Helper()
	return uninstallWith(t.Context(), l, options{namespace: "own"})
}

// TestUninstallOrder checks the order: the managers end, then the webhooks and policies are deleted, then the updates fall back. Nothing
// else happens before the managers are gone.
func TestUninstallOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeaving(t, &leaving{pods: 2, lasting: 20 * time.Second})
		began := time.Now()
		if err := l.uninstall(t); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < l.lasting {
			t.Errorf("it went on after %s, with managers still there", took)
		}
		want := []string{`scale own/stayput {"spec":{"replicas":0}}`, "*v1.PodList"}
		for _, admissionObject := range admissionObjects() {
			want = append(want, admissionObject.GetObjectKind().GroupVersionKind().Kind+" "+admissionObject.GetName())
		}
		if len(l.did) <= len(want) || !slices.Equal(l.did[:len(want)], want) {
			t.Errorf("it did\n%s\nwant\n%s\nand then the fallbacks", strings.Join(l.did, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestUninstallWhenPartsAreGone(t *testing.T) {
	l := newLeaving(t, &leaving{notFound: true})
	if err := l.uninstall(t); err != nil {
		t.Error(err)
	}
	if !slices.Contains(l.did, "*inplace.DeploymentList") && !slices.Contains(l.did, "*apps.ReplicaSetList") {
		t.Errorf("no update fell back: %q", l.did)
	}
}

// TestUninstallStops checks that no update falls back while a manager runs, which would take it up again, or a policy exists, which would
// refuse the writes.
func TestUninstallStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, l := range map[string]*leaving{
			"managers": {pods: 1, lasting: time.Hour},
			"refused":  {refuse: errors.New("refused")},
		} {
			if err := newLeaving(t, l).uninstall(t); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
			if slices.Contains(l.did, "*apps.ReplicaSetList") {
				t.Errorf("%s: updates fell back all the same", what)
			}
		}
	})
}

// TestUninstallKnowsTheManifests checks that uninstall deletes every webhook configuration and policy of the manifests, and no other.
func TestUninstallKnowsTheManifests(t *testing.T) {
	var installed, removed []string
	for _, document := range documentsIn(t, "../../manifests/base/*.yaml") {
		if object := decode[metav1.PartialObjectMetadata](t, document); strings.HasSuffix(object.Kind, "WebhookConfiguration") ||
			strings.Contains(object.Kind, "AdmissionPolicy") {
			installed = append(installed, object.Kind+" "+object.Name)
		}
	}
	for _, admissionObject := range admissionObjects() {
		removed = append(removed, admissionObject.GetObjectKind().GroupVersionKind().Kind+" "+admissionObject.GetName())
	}
	slices.Sort(installed)
	slices.Sort(removed)
	if may := deletable(t, "../../manifests/uninstall/job.yaml"); !slices.Equal(may, removed) {
		t.Errorf("make uninstall lets it remove\n%s\nand it removes\n%s", strings.Join(may, "\n"), strings.Join(removed, "\n"))
	}
	if !slices.Equal(installed, removed) {
		t.Errorf("installed are\n%s\nremoved are\n%s", strings.Join(installed, "\n"), strings.Join(removed, "\n"))
	}
}

// documentsIn returns the YAML documents in the files that match the pattern.
func documentsIn(t *testing.T, pattern string) [][]byte {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s matches no file: %v", pattern, err)
	}
	var documents [][]byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, bytes.Split(content, []byte("\n---\n"))...)
	}
	return documents
}

func decode[T any](t *testing.T, document []byte) (object T) {
	t.Helper()
	if err := yaml.Unmarshal(document, &object); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	return object
}

// deletable returns the kinds and names of the objects that the ClusterRole in the file allows to delete.
func deletable(t *testing.T, file string) []string {
	t.Helper()
	kinds := map[string]string{}
	for _, admissionObject := range admissionObjects() {
		kind := admissionObject.GetObjectKind().GroupVersionKind()
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		kinds[plural.Resource] = kind.Kind
	}
	var may []string
	for _, document := range documentsIn(t, file) {
		role := decode[rbacv1.ClusterRole](t, document)
		if role.Kind != "ClusterRole" {
			continue
		}
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Verbs, "delete") {
				continue
			}
			for _, resource := range rule.Resources {
				for _, name := range rule.ResourceNames {
					may = append(may, kinds[resource]+" "+name)
				}
			}
		}
	}
	slices.Sort(may)
	return may
}
