package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// restartPod asks for the restarts by the pod's own annotations.
func (f *restartFlags) restartPod(ctx context.Context, cluster *connection, name string, out io.Writer) error {
	namespace, _, err := cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	writer, err := cluster.client(rest.NoWarnings{})
	if err != nil {
		return err
	}
	r := &podRestart{Client: writer, flags: f, key: types.NamespacedName{Namespace: namespace, Name: name}, teller: teller{out: out}}
	if err := r.ask(ctx); err != nil || !f.wait {
		return err
	}
	return r.follow(ctx)
}

// podRestart restarts containers of one pod.
type podRestart struct {
	client.Client
	flags *restartFlags
	key   types.NamespacedName
	teller
	// before is the pod as it was before the request.
	before corev1.Pod
}

// ask writes the request, unless it is clear that it would be refused or not seen.
func (r *podRestart) ask(ctx context.Context) error {
	if err := r.Get(ctx, r.key, &r.before); err != nil {
		return err
	}
	for _, container := range r.flags.containers {
		if edit.Named(&r.before.Spec, container) == nil {
			return fmt.Errorf("pod/%s has no container or sidecar %s", r.key.Name, container)
		}
	}
	if pending := r.before.Annotations[inplace.AnnotationRestartContainers]; pending != "" {
		return fmt.Errorf("pod/%s is to restart %s already; to withdraw that, remove its annotation %s", r.key.Name, pending,
			inplace.AnnotationRestartContainers)
	}
	if err := r.managed(ctx); err != nil {
		return err
	}
	deadline := time.Now().Add(r.flags.timeout).UTC().Format(time.RFC3339)
	err := r.annotate(ctx, map[string]string{inplace.AnnotationRestartContainers: strings.Join(r.flags.containers, ","),
		inplace.AnnotationRestartDeadline: deadline})
	if err == nil {
		r.say("pod/%s: restarts %s, until %s", r.key.Name, strings.Join(r.flags.containers, ", "), deadline)
	}
	return err
}

// managed returns an error if the pod's namespace is not labelled, as far as the user may read that.
func (r *podRestart) managed(ctx context.Context) error {
	var namespace corev1.Namespace
	if err := r.Get(ctx, types.NamespacedName{Name: r.key.Namespace}, &namespace); err != nil {
		return utilerrors.FilterOut(err, apierrors.IsForbidden)
	}
	if mode := inplace.Mode(namespace.Labels[inplace.LabelUpdate]); !mode.Manages() {
		return fmt.Errorf("nothing is restarted in place in namespace %s: its label %s is %q", r.key.Namespace, inplace.LabelUpdate, string(mode))
	}
	return nil
}

// annotate sets annotations of the pod that was read before.
func (r *podRestart) annotate(ctx context.Context, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": r.before.UID, "annotations": annotations}})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = r.key.Namespace, r.key.Name
	return r.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
}

// follow waits until the containers have restarted and the pod is Ready. What has not begun by then does not restart any more: the request
// has a deadline.
func (r *podRestart) follow(ctx context.Context) error {
	look := func(context.Context) (bool, error) { return r.look(ctx) } // a request may take longer
	err := polling.PollUntilContextTimeout(ctx, time.Second, r.flags.timeout, true, look)
	if polling.Interrupted(err) {
		return fmt.Errorf("pod/%s: not over after %s", r.key.Name, r.flags.timeout)
	}
	return err
}

// look reports whether the containers have restarted and the pod is Ready.
func (r *podRestart) look(ctx context.Context) (over bool, err error) {
	var pod corev1.Pod
	if err := r.Get(ctx, r.key, &pod); err != nil {
		return false, err
	}
	if pod.UID != r.before.UID || pod.DeletionTimestamp != nil {
		return false, fmt.Errorf("pod/%s was deleted meanwhile", r.key.Name)
	}
	_, waits := pod.Annotations[inplace.AnnotationRestartContainers]
	result := pod.Annotations[inplace.AnnotationRestarted]
	switch why, refused := strings.CutPrefix(result, "refused "); {
	case waits:
		if strings.HasPrefix(result, podstate.AnswersWaiting) {
			r.say("pod/%s: %s", r.key.Name, result)
		}
		return false, nil
	case refused:
		return false, fmt.Errorf("pod/%s: refused: %s", r.key.Name, why)
	case !apps.IsTrue(&pod, corev1.PodReady) || !r.restarted(&pod):
		return false, nil
	}
	r.say("pod/%s: %s", r.key.Name, result)
	return true, nil
}

// restarted reports whether each of the containers is another one than before.
func (r *podRestart) restarted(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(r.flags.containers, func(name string) bool {
		id := readiness.ContainerStatus(pod, name).ContainerID
		return id == "" || id == readiness.ContainerStatus(&r.before, name).ContainerID
	})
}
