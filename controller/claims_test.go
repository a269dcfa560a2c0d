package controller

import (
	"context"
	"strings"
	"testing"

	"github.com/stayput/stayput/controller/internal/fixture"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace/apps"
)

func claim(name string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes}}
}

// withClaims adds volumes with these claims to the templates of the Deployment and its ReplicaSets.
func (c *cluster) withClaims(names ...string) {
	c.T.Helper()
	var volumes []string
	for _, name := range names {
		volumes = append(volumes, `{"name":"`+name+`","persistentVolumeClaim":{"claimName":"`+name+`"}}`)
	}
	with := func(template apps.Template) apps.Template {
		raw, err := template.MarshalJSON()
		c.do(err)
		parsed, err := apps.ParseTemplate([]byte(
			strings.Replace(string(raw), `"spec":{`, `"spec":{"volumes":[`+strings.Join(volumes, ",")+`],`, 1)))
		c.do(err)
		return parsed
	}
	deployment := c.Snapshot().Read.Deployment
	deployment.Spec.Template = with(deployment.Spec.Template)
	c.do(c.Update(c.T.Context(), deployment))
	for _, name := range []string{"web-old", "web-new"} {
		replicaSet := c.ReplicaSet(name)
		replicaSet.Spec.Template = with(replicaSet.Spec.Template)
		c.do(c.Update(c.T.Context(), replicaSet))
	}
}

// reading counts reads of claims. The first reads fail.
type reading struct {
	failing error
	failed  int
	asked   []string
}

func (r *reading) of(c *cluster) {
	c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*corev1.PersistentVolumeClaim); is {
				r.asked = append(r.asked, key.Name)
				if len(r.asked) <= r.failed {
					return r.failing
				}
			}
			return to.Get(ctx, key, object, options...)
		}})
}

func TestReadsClaimsOncePerUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		claims []*corev1.PersistentVolumeClaim
		names  []string
		asked  string
		want   string
	}{
		"no claim":       {nil, nil, "", ""},
		"for many nodes": {[]*corev1.PersistentVolumeClaim{claim("a", corev1.ReadWriteMany)}, []string{"a"}, "a", ""},
		"for one":        {[]*corev1.PersistentVolumeClaim{claim("a", corev1.ReadWriteOnce)}, []string{"a"}, "a", "a"},
		"the second of two": {
			[]*corev1.PersistentVolumeClaim{claim("a", corev1.ReadOnlyMany), claim("b", corev1.ReadWriteOncePod)}, []string{"a", "b"}, "a b", "b"},
		"the first of two": {
			[]*corev1.PersistentVolumeClaim{claim("a", corev1.ReadWriteOnce), claim("b", corev1.ReadWriteOnce)}, []string{"a", "b"}, "a", "a"},
		"one that is gone": {nil, []string{"a"}, "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, read := newCluster(t), &reading{}
			for _, claim := range test.claims {
				h.Add(claim)
			}
			h.withClaims(test.names...)
			read.of(h)
			server := h.dryRunning(nil)
			r := server.reconciler(nil)
			server.reconcileTimes(r, 4)
			got := r.memories.recall(fixture.Web).DryRun.Claim
			if got != test.want || strings.Join(read.asked, " ") != test.asked || !server.begun() {
				t.Errorf("claim %q is for one node, read %v, begun %t", got, read.asked, server.begun())
			}
		})
	}
}

func TestClaimsThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		waits bool
	}{
		"not allowed": {apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "a", fixture.ErrText("no")), false},
		"a failure":   {apierrors.NewInternalError(fixture.ErrText("away")), true},
	} {
		t.Run(name, func(t *testing.T) {
			h, read := newCluster(t), &reading{failing: test.err, failed: 1}
			h.Add(claim("a", corev1.ReadWriteOnce))
			h.withClaims("a")
			read.of(h)
			r := h.reconciler(nil)
			h.reconcile(r)
			if answered := r.memories.recall(fixture.Web).DryRun.UpdateRevision != ""; answered == test.waits {
				t.Errorf("the first attempt is an answer: %t", answered)
			}
			h.reconcile(r)
			if got := r.memories.recall(fixture.Web).DryRun.Claim; test.waits && got != "a" {
				t.Errorf("after the second attempt claim %q is for one node", got)
			}
		})
	}
}
