package commands

import (
	"bytes"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func told(t *testing.T, objects ...runtime.Object) string {
	t.Helper()
	var out bytes.Buffer
	byReason := func(object client.Object) []string { return []string{object.(*corev1.Event).Reason} }
	from := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithIndex(&corev1.Event{}, "reason", byReason).
		WithRuntimeObjects(objects...).Build()
	if err := (overview{Reader: from, own: "stayput-system", now: now}).print(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func lease(holder string, renewed time.Duration) *coordinationv1.Lease {
	at := metav1.NewMicroTime(now.Add(-renewed))
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "stayput-system", Name: inplace.Lease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at}}
}

func TestStatusTellsTheLeader(t *testing.T) {
	for want, objects := range map[string][]runtime.Object{
		"No manager leads, so every update is native": nil,
		"Leader: stayput-1":                           {lease("stayput-1", time.Second)},
		"native: see kubectl stayput check":           {lease("stayput-1", 2*time.Minute)},
		"update is native: see":                       {lease("", time.Second)},
	} {
		if got := told(t, objects...); !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

func TestStatusListsManagedWorkloads(t *testing.T) {
	isController := true
	owner := []metav1.OwnerReference{{UID: "web", Controller: &isController}}
	got := told(t, lease("stayput-1", time.Second),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web",
			Annotations: map[string]string{inplace.AnnotationDecision: "in place: restarts app"}}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", OwnerReferences: owner,
			Labels: map[string]string{inplace.LabelUpdating: "1767262800"}}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent",
			Labels: map[string]string{inplace.LabelUpdate: inplace.Native}}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "unmanaged"}},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Reason: report.EventBypassed, Message: "was not held",
			InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"}},
	)
	rows := [][]string{
		{"Warning: Deployment shop/web: was not held"},
		{"shop", "Deployment", "web", "in-place", "in place", "in place: restarts app"},
		{"shop", "DaemonSet", "agent", "native", "-", "-"},
	}
	for _, row := range rows {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(strings.Join(row, " ")), " ")) {
			t.Errorf("%s\ndoes not say %q", got, row)
		}
	}
	if strings.Contains(got, "unmanaged") {
		t.Errorf("%s\nsays something of a namespace without the label", got)
	}
}

func TestUnknownCommand(t *testing.T) {
	for name, want := range map[string]string{
		"statsu": "Did you mean this?\n\tstatus",
		"undo":   `unknown command "undo"`,
	} {
		var errs bytes.Buffer
		code := Run(t.Context(), []string{name}, streams{Out: &bytes.Buffer{}, ErrOut: &errs})
		if code != 1 || !strings.Contains(errs.String(), want) {
			t.Errorf("exit code %d, %q does not say %q", code, errs.String(), want)
		}
	}
}
