package configuration

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/configuration"
)

// world is an API server with a Deployment that follows ConfigMap web-config.
type world struct {
	*fixture.Cluster
	restarts *Restarts
	seen     configuration.Namespace
	err      error
	left     []Follower
}

func (w *world) Read(context.Context, Follower) (configuration.Namespace, error) {
	return w.seen, w.err
}
func (w *world) Leave(by Follower) { w.left = append(w.left, by) }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: fixture.New(t)}
	w.restart()
	w.annotate(map[string]string{inplace.AnnotationRestartOnChange: "configmap/web-config"})
	w.has("1")
	return w
}

// restart makes another process lead.
func (w *world) restart() {
	reporter := report.New(kinds.Deployments, w.Recorder, report.NewMetrics(prometheus.NewRegistry()))
	w.restarts = &Restarts{Kind: kinds.Deployments.Kind, Cached: w.Observer(), Client: w, Sources: w, Report: reporter}
}

func (w *world) has(version string) {
	w.seen = configuration.Namespace{ConfigMaps: map[string]string{"web-config": version}}
}

func (w *world) annotate(annotations map[string]string) {
	w.T.Helper()
	web := w.web()
	web.Annotations = annotations
	if err := w.Update(w.T.Context(), web); err != nil {
		w.T.Fatal(err)
	}
}

func (w *world) web() *apps.Deployment {
	w.T.Helper()
	web := &apps.Deployment{}
	if err := w.Get(w.T.Context(), fixture.Web, web); err != nil {
		w.T.Fatal(err)
	}
	return web
}

// look reconciles, and returns after what time to look again.
func (w *world) look() time.Duration {
	w.T.Helper()
	result, err := w.restarts.Reconcile(w.T.Context(), fixture.Request)
	if err != nil {
		w.T.Fatal(err)
	}
	return result.RequeueAfter
}

// want checks the Record, and how often the template was edited.
func (w *world) want(record string, restarted bool) {
	w.T.Helper()
	web := w.web()
	got := web.Annotations[inplace.AnnotationConfiguration]
	if got != "" {
		got = configuration.RecordOf(web).String()
	}
	if got != record {
		w.T.Errorf("the Record is %q, want %q", got, record)
	}
	if _, has := web.Spec.Template.Annotations()[inplace.AnnotationConfiguration]; has != restarted {
		w.T.Errorf("template edited %t, want %t", has, restarted)
	}
}

func TestAChangeRestartsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if again := w.look(); again != 0 {
			t.Errorf("looks again after %s at what was seen first", again)
		}
		w.want(`{"configmap/web-config":"1"}`, false)
		w.has("2")
		if again := w.look(); again != 5*time.Second {
			t.Errorf("looks again after %s", again)
		}
		w.want(`{"configmap/web-config":"1"}`, false)
		time.Sleep(5 * time.Second)
		w.look()
		w.want(`{"configmap/web-config":"2"}`, true)
		mark := w.web().Spec.Template.Annotations()[inplace.AnnotationConfiguration]
		time.Sleep(time.Hour)
		w.look()
		if again := w.web().Spec.Template.Annotations()[inplace.AnnotationConfiguration]; again != mark {
			t.Errorf("the template was edited again: %s, then %s", mark, again)
		}
		fixture.WantTold(t, w.Recorder, "ConfigurationChanged configmap/web-config changed: no manager has decided")
	})
}

// TestTheNextLeaderRestarts has a change that the last leader has not seen, or not restarted for.
func TestTheNextLeaderRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.look()
		w.has("2")
		w.look()
		w.restart()
		w.look()
		w.want(`{"configmap/web-config":"1"}`, false)
		time.Sleep(5 * time.Second)
		w.look()
		w.want(`{"configmap/web-config":"2"}`, true)
	})
}

// TestAnOutdatedEditIsNotMade has another client change the Deployment just before the write.
func TestAnOutdatedEditIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.look()
		w.has("2")
		w.look()
		time.Sleep(5 * time.Second)
		raced := false
		w.Refuse = func(client.Object, string) error {
			if raced {
				return nil
			}
			raced = true
			return apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", nil)
		}
		if again := w.look(); again != lookAgain {
			t.Errorf("looks again after %s", again)
		}
		w.want(`{"configmap/web-config":"1"}`, false)
		w.look()
		w.want(`{"configmap/web-config":"2"}`, true)
	})
}

// TestARefusalIsToldOnce has an API server that accepts no edit, as in namespaces that are in-place-only where new pods would be needed.
func TestARefusalIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.look()
		w.has("2")
		w.look()
		time.Sleep(5 * time.Second)
		w.Refuse = func(client.Object, string) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New("in-place-only"))
		}
		for range 3 {
			if again := w.look(); again == 0 || again > tryAgain {
				t.Errorf("looks again after %s", again)
			}
			time.Sleep(10 * time.Second)
		}
		if w.Patches != 2 { // the first is the note
			t.Errorf("%d writes were tried, want 2", w.Patches)
		}
		fixture.WantTold(t, w.Recorder, "ConfigurationNotFollowed The API server refuses Stayput's edit")
		w.Refuse = nil
		time.Sleep(tryAgain)
		w.look()
		w.want(`{"configmap/web-config":"2"}`, true)
	})
}

func TestWhatIsNotFollowedIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		err                 error
		told                []string
		left                bool
	}{
		"no right": {annotations: map[string]string{inplace.AnnotationRestartOnChange: "*"}, err: errors.New("configmaps is forbidden"),
			told: []string{"ConfigurationNotFollowed configmaps is forbidden"}},
		"not read yet": {annotations: map[string]string{inplace.AnnotationRestartOnChange: "*"}, err: errNotYet},
		"no list": {annotations: map[string]string{inplace.AnnotationRestartOnChange: "web"}, left: true,
			told: []string{`is ignored: "web" is none of *`}},
		"native": {annotations: map[string]string{inplace.AnnotationRestartOnChange: "*"}, labels: map[string]string{
			inplace.LabelUpdate: "recreate"}, told: []string{"Its labels ask for native updates"}, left: true},
		"not asked for": {left: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			web := w.web()
			web.Labels, web.Annotations, w.err = test.labels, test.annotations, test.err
			if err := w.Update(t.Context(), web); err != nil {
				t.Fatal(err)
			}
			w.look()
			w.look()
			fixture.WantTold(t, w.Recorder, test.told...)
			if left := len(w.left) > 0; left != test.left || w.Patches > 0 {
				t.Errorf("left %t, want %t; %d writes", left, test.left, w.Patches)
			}
		})
	}
}

// TestUnlabelledNamespacesAreLeftAlone checks that not even an event is written there.
func TestUnlabelledNamespacesAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	namespace := &corev1.Namespace{}
	if err := w.Get(t.Context(), types.NamespacedName{Name: fixture.Web.Namespace}, namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Labels = nil
	if err := w.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.look()
	w.want("", false)
	fixture.WantTold(t, w.Recorder)
}

func TestAsks(t *testing.T) {
	plain, asking := newWorld(t).web(), newWorld(t).web()
	plain.Annotations = nil
	status := asking.DeepCopy()
	status.Status.Replicas++
	edited := asking.DeepCopy()
	edited.Generation++
	for name, test := range map[string]struct {
		before, after *apps.Deployment
		want          bool
	}{
		"neither": {plain, plain, false}, "asks now": {plain, asking, true}, "asked before": {asking, plain, true},
		"only its status changes": {asking, status, false}, "its spec changes": {asking, edited, true},
	} {
		if got := Asks.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: passed %t", name, got)
		}
	}
}
