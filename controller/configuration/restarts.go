package configuration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/configuration"
	"github.com/stayput/stayput/internal/observe"
)

const (
	// lookAgain is after what time a workload is looked at again if the cache is outdated or not filled yet.
	lookAgain = 2 * time.Second
	// tryAgain is after what time something is tried again that needs an administrator.
	tryAgain = time.Minute
)

// Restarts edits the templates of workloads of one kind when what they follow has changed.
type Restarts struct {
	Kind    observe.Kind
	Cached  observe.Reader
	Client  client.Client
	Sources reader
	Report  reporter

	memories sync.Map // *memory by types.NamespacedName
}

// reader reads what workloads follow: see Sources.
type reader interface {
	// Read returns the sources of the workload's namespace. The error is errNotYet until they are known.
	Read(ctx context.Context, by Follower) (configuration.Namespace, error)
	// Leave says that the workload follows nothing any more.
	Leave(by Follower)
}

// reporter tells users: see report.Reporter.
type reporter interface {
	ConfigurationChanged(workload client.Object, sources []string)
	ConfigurationNotFollowed(workload client.Object, why string)
}

// errNotYet says that what a workload follows is not known yet.
var errNotYet = errors.New("not known yet")

// memory is what is remembered of one workload. One worker works on it at a time.
type memory struct {
	configuration.Memory
	told    string    // what was reported last
	refused string    // the edit that was refused
	until   time.Time // until when it is not tried again
}

// Asks passes workloads that follow configuration, or did so before, unless only their status has changed.
var Asks = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return asks(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return (asks(before) || asks(after)) && (before.GetGeneration() != after.GetGeneration() ||
			!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) || !maps.Equal(before.GetLabels(), after.GetLabels()))
	},
	DeleteFunc:  func(e event.DeleteEvent) bool { return asks(e.Object) },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func asks(workload client.Object) bool {
	_, has := workload.GetAnnotations()[inplace.AnnotationRestartOnChange]
	return has
}

// Reconcile looks at one workload.
func (r *Restarts) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	by := Follower{Kind: r.Kind.Workload.Name, NamespacedName: request.NamespacedName}
	workload, err := r.Cached.Workload(ctx, r.Kind, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if workload == nil || !asks(workload) || workload.GetDeletionTimestamp() != nil {
		r.leave(by)
		return reconcile.Result{}, nil
	}
	entries, why, err := r.followed(ctx, workload)
	if err != nil {
		return reconcile.Result{}, err
	}
	if entries == nil {
		r.Sources.Leave(by)
		r.tell(workload, why)
		return reconcile.Result{}, nil
	}
	return r.follow(ctx, by, workload, entries)
}

// followed returns what the workload follows; if nothing, why, unless that goes without saying: nothing is done in namespaces without
// Stayput's label.
func (r *Restarts) followed(ctx context.Context, workload client.Object) (entries []string, why string, err error) {
	namespace, err := r.Cached.NamespaceMode(ctx, workload.GetNamespace())
	if err != nil || !namespace.Manages() {
		return nil, "", err
	}
	mode, err := r.Cached.Mode(ctx, r.Kind, workload.GetNamespace(), workload.GetLabels())
	if err != nil {
		return nil, "", err
	}
	if !mode.Manages() {
		return nil, fmt.Sprintf("Its labels ask for native updates, so nothing restarts for %s", inplace.AnnotationRestartOnChange), nil
	}
	entries, flaw := inplace.RestartOnChangeOf(workload.GetAnnotations())
	return entries, textOf(flaw), nil
}

// textOf returns the text of an error that users are told; "" if there is none.
func textOf(flaw error) string {
	if flaw == nil {
		return ""
	}
	return flaw.Error()
}

// follow compares what the workload follows with what was seen last, and makes the write that is due.
func (r *Restarts) follow(ctx context.Context, by Follower, workload client.Object, entries []string) (reconcile.Result, error) {
	seen, err := r.Sources.Read(ctx, by)
	switch {
	case errors.Is(err, errNotYet):
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case err != nil:
		r.tell(workload, err.Error())
		return reconcile.Result{RequeueAfter: tryAgain}, nil
	}
	now, err := seen.Followed(entries, apps.TemplateOf(workload))
	if err != nil {
		r.tell(workload, err.Error())
		return reconcile.Result{}, nil
	}
	remembered := r.recall(by.NamespacedName)
	remembered.Adopt(configuration.PaceOf(workload), time.Now())
	decision := remembered.Decide(configuration.RecordOf(workload), now, time.Now())
	switch {
	case decision.Restart:
		return r.restart(ctx, workload, now, decision.Changed)
	case decision.Note:
		_, result, err := r.write(ctx, workload, "note "+now.String(), configuration.Noting(workload, now))
		return result, err
	case decision.Often:
		r.tell(workload, fmt.Sprintf("%s changes again and again, so the next restart waits for up to an hour; name what is to be followed in %s",
			inplace.FirstOf(decision.Changed, ", "), inplace.AnnotationRestartOnChange))
	}
	return reconcile.Result{RequeueAfter: decision.After}, nil
}

// restart edits the template.
func (r *Restarts) restart(
	ctx context.Context, workload client.Object, now configuration.Record, changed []string,
) (reconcile.Result, error) {
	remembered := r.recall(client.ObjectKeyFromObject(workload))
	next := remembered.Next(time.Now())
	operations := configuration.Restarting(workload, apps.TemplateOf(workload), now, next)
	after, result, err := r.write(ctx, workload, "restart "+now.String(), operations)
	if after == nil {
		return result, err
	}
	remembered.Keeps(next)
	r.Report.ConfigurationChanged(after, changed)
	return reconcile.Result{}, nil
}

// write makes one guarded write for what is wanted, and returns the workload after it; nil if it was not made. A write that was refused
// is not tried again for a while unless it is another one.
func (r *Restarts) write(
	ctx context.Context, workload client.Object, what string, operations []jsonpatch.Operation,
) (after client.Object, result reconcile.Result, err error) {
	remembered, asked := r.recall(client.ObjectKeyFromObject(workload)), requested(workload, what)
	if wait := time.Until(remembered.until); remembered.refused == asked && wait > 0 {
		return nil, reconcile.Result{RequeueAfter: wait}, nil
	}
	after = r.Kind.Workload.Object()
	after.SetNamespace(workload.GetNamespace())
	after.SetName(workload.GetName())
	err = r.Client.Patch(ctx, after, write.Operations(operations), write.FieldOwner)
	switch {
	case err == nil:
		remembered.told, remembered.refused = "", ""
		return after, reconcile.Result{}, nil
	case write.IsOutdated(err):
		return nil, reconcile.Result{RequeueAfter: lookAgain}, nil
	case write.IsRefused(err):
		remembered.refused, remembered.until = asked, time.Now().Add(tryAgain)
		r.tell(workload, "The API server refuses Stayput's edit: "+err.Error())
		return nil, reconcile.Result{RequeueAfter: tryAgain}, nil
	}
	return nil, reconcile.Result{}, err
}

// requested returns a text that tells what is wanted of this version of the workload from all else, whatever the workload's status is.
func requested(workload client.Object, what string) string {
	return fmt.Sprint(workload.GetUID(), " ", workload.GetGeneration(), " ", what)
}

// tell reports the same about a workload only once.
func (r *Restarts) tell(workload client.Object, why string) {
	remembered := r.recall(client.ObjectKeyFromObject(workload))
	if why != "" && why != remembered.told {
		r.Report.ConfigurationNotFollowed(workload, why)
	}
	remembered.told = why
}

func (r *Restarts) recall(workload types.NamespacedName) *memory {
	remembered, _ := r.memories.LoadOrStore(workload, &memory{})
	return remembered.(*memory)
}

// leave forgets a workload that follows nothing.
func (r *Restarts) leave(by Follower) {
	r.Sources.Leave(by)
	r.memories.Delete(by.NamespacedName)
}
