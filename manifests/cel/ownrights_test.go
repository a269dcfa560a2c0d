package cel

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stayput/stayput/inplace"
)

// TestOwnPowerOverRights checks that Stayput may put its finalizer on the objects that give it its rights, and take it off, and that it may
// change nothing else in them.
func TestOwnPowerOverRights(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-rights")
	binding := func(finalizers ...string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: "stayput", Finalizers: finalizers},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "stayput", Namespace: "stayput-system"}}}
	}
	changed := func(change func(*rbacv1.ClusterRoleBinding)) *rbacv1.ClusterRoleBinding {
		sent := binding()
		change(sent)
		return sent
	}
	account := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Name: "stayput", Namespace: "stayput-system"}}
	role := &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "stayput"}}
	kept, powerful, tokened := role.DeepCopy(), role.DeepCopy(), account.DeepCopy()
	kept.Finalizers = []string{inplace.Finalizer}
	powerful.Rules = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
	tokened.Secrets = []corev1.ObjectReference{{Name: "token"}}
	for name, test := range map[string]struct {
		old, sent runtime.Object
		allowed   bool
	}{
		"its finalizer":         {binding(), binding(inplace.Finalizer), true},
		"its finalizer off":     {binding(inplace.Finalizer), binding(), true},
		"beside another":        {binding("other/one"), binding("other/one", inplace.Finalizer), true},
		"on a role":             {role, kept, true},
		"another finalizer":     {binding(), binding("other/one"), false},
		"another finalizer off": {binding("other/one", inplace.Finalizer), binding(inplace.Finalizer), false},
		"a label":               {binding(), changed(func(b *rbacv1.ClusterRoleBinding) { b.Labels = map[string]string{"any": "x"} }), false},
		"another subject":       {binding(), changed(func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Name = "thief" }), false},
		"no subject":            {binding(), changed(func(b *rbacv1.ClusterRoleBinding) { b.Subjects = nil }), false},
		"an owner": {binding(), changed(func(b *rbacv1.ClusterRoleBinding) {
			b.OwnerReferences = []metav1.OwnerReference{{}}
		}), false},
		"a rule":                 {role, powerful, false},
		"a Secret of an account": {account, tokened, false},
	} {
		refused := policy.of(test.old, test.sent, &corev1.Namespace{}, byStayput)
		if (refused == "") != test.allowed || !test.allowed && !strings.Contains(refused, "nothing in its own rights but") {
			t.Errorf("%s: refused with %q", name, refused)
		}
	}
}
