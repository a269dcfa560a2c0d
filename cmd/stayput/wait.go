package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/prepull"
)

// wait does nothing, until it is told to end.
func wait(ctx context.Context, _ options) error {
	<-ctx.Done()
	return nil
}

func takesNothing(command string, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("unexpected argument %q: %s takes none", arguments[0], command)
	}
	return nil
}

// waiter reads the pod this process runs in: pullers run the same image. Outside of a cluster there is none, and nothing is
// pulled first.
func waiter(ctx context.Context, live client.Reader, namespace string) (prepull.Waiter, error) {
	name := os.Getenv(envName)
	if name == "" {
		return prepull.Waiter{}, nil
	}
	own := &corev1.Pod{}
	err := live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, own)
	if apierrors.IsNotFound(err) {
		return prepull.Waiter{}, nil
	}
	if err != nil {
		return prepull.Waiter{}, fmt.Errorf("read our own pod %s/%s: %w", namespace, name, err)
	}
	return prepull.WaiterOf(own, "manager"), nil
}
