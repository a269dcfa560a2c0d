package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// controlPlane has native controllers that answer a proof.
type controlPlane struct {
	user      string // who the Deployment controller is; it does not answer if that is empty
	forbidden string // the kind that may not be created
	stops     string // the kind at which the user interrupts the proof
	keeps     bool   // deletions are refused
}

const deniedBy = `replicasets.apps "x" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'x' denied request: created by "%s"`

// prove runs a proof, and returns what it finds and which objects it has left.
func (c controlPlane) prove(t *testing.T) (r *run, says string, left []string, err error) {
	t.Helper()
	known := runtime.NewScheme()
	if err := addKinds(known); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fakes := fake.NewClientBuilder().WithScheme(known).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1.")
			switch kind {
			case c.forbidden:
				return apierrors.NewForbidden(corev1.Resource(kind), object.GetName(), errors.New("no"))
			case c.stops:
				cancel()
			}
			if err := to.Create(ctx, object); err != nil {
				return err
			}
			return errors.Join(ctx.Err(), c.answers(ctx, to, kind, object))
		},
		Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if c.keeps {
				return errors.New("a finalizer")
			}
			return to.Delete(ctx, object, options...)
		},
	}).Build()
	r = &run{Checker: Checker{Client: fakes}, about: "native controllers", version: "v1.36.3"}
	says, err = r.prove(ctx)
	return r, says, leftIn(t, fakes), err
}

// answers records the event that the Deployment controller records.
func (c controlPlane) answers(ctx context.Context, to client.Client, kind string, object client.Object) error {
	if kind != "Deployment" || c.user == "" {
		return nil
	}
	return to.Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: "of-it"},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: object.GetName()},
		Message:        "Failed to create new replica set: " + fmt.Sprintf(deniedBy, c.user)})
}

// leftIn returns the kinds of the objects of the cluster that are not in a namespace.
func leftIn(t *testing.T, from client.Client) (left []string) {
	t.Helper()
	for kind, list := range map[string]client.ObjectList{"Namespace": &corev1.NamespaceList{},
		"Policy": &admissionv1.ValidatingAdmissionPolicyList{}, "Binding": &admissionv1.ValidatingAdmissionPolicyBindingList{}} {
		if err := from.List(context.Background(), list, client.MatchingLabels{proofLabel: proofName}); err != nil {
			t.Fatal(err)
		}
		if meta.LenList(list) > 0 {
			left = append(left, kind)
		}
	}
	slices.Sort(left)
	return left
}

func TestProof(t *testing.T) {
	t.Parallel()
	own := "system:serviceaccount:kube-system:deployment-controller"
	for name, test := range map[string]struct {
		of   controlPlane
		says string // part of what is said if nothing is wrong
		find string // part of the finding, with its level
		err  string
		left []string
	}{
		"own users": {of: controlPlane{user: own}, says: "proved: they are users of their own, so Kubernetes v1.36.3"},
		"one user": {of: controlPlane{user: "system:kube-controller-manager"}, find: "error: proved that the native controllers have no user " +
			"names of their own: deployment-controller is system:kube-controller-manager. Stayput"},
		"no answer":                     {find: "unchecked: the proof got no answer of the Deployment controller; the last event: none"},
		"no right to create namespaces": {of: controlPlane{user: own, forbidden: "Namespace"}, err: `Namespace "stayput-prove-`},
		"no right to create policies": {
			of: controlPlane{user: own, forbidden: "ValidatingAdmissionPolicy"}, err: `ValidatingAdmissionPolicy "stayput-prove-`},
		"interrupted":                {of: controlPlane{user: own, stops: "Deployment"}, err: "context canceled"},
		"interrupted at once":        {of: controlPlane{user: own, stops: "Namespace"}, err: "context canceled"},
		"interrupted, at the policy": {of: controlPlane{user: own, stops: "ValidatingAdmissionPolicy"}, err: "context canceled"},
		"what is kept": {of: controlPlane{user: own, keeps: true}, err: "kubectl delete -l app.kubernetes.io/name=stayput-prove namespaces,",
			left: []string{"Binding", "Namespace", "Policy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, says, left, err := test.of.prove(t)
			var found string
			for _, each := range r.Findings {
				found += string(each.Level) + ": " + each.Problem
			}
			if found == "" != (test.find == "") || !strings.Contains(found, test.find) || found == "" && !strings.Contains(says, test.says) {
				t.Errorf("it says %q and finds %q", says, found)
			}
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("its error is %v, want %q", err, test.err)
			}
			if !slices.Equal(left, test.left) {
				t.Errorf("it leaves %q", left)
			}
		})
	}
}

// TestProofComesFirst checks that a proof replaces what service accounts only suggest.
func TestProofComesFirst(t *testing.T) {
	c := sound(t)
	without[*corev1.ServiceAccount]("replicaset-controller")(c)
	checker := c.checker(t, false)
	checker.Prove = true
	found, err := checker.Check(t.Context())
	if err != nil || len(found.Findings) != 1 || !strings.Contains(found.Findings[0].Problem, "the proof: a check creates nothing else") {
		t.Errorf("%+v, %v", found.Findings, err)
	}
}
