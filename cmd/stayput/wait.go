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

// wait does nothing until ctx ends.
func wait(ctx context.Context, _ options) error {
	<-ctx.Done()
	return nil
}

// waitImage reads the pod in which this process runs: pre-pull pods run the same image. Outside of a cluster there is no such pod, and
// Stayput creates no pre-pull pods.
func waitImage(ctx context.Context, live client.Reader, namespace string) (prepull.WaitImage, error) {
	name := os.Getenv(envName)
	if name == "" {
		return prepull.WaitImage{}, nil
	}
	own := &corev1.Pod{}
	err := live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, own)
	if apierrors.IsNotFound(err) {
		return prepull.WaitImage{}, nil
	}
	if err != nil {
		return prepull.WaitImage{}, fmt.Errorf("read our own pod %s/%s: %w", namespace, name, err)
	}
	return prepull.WaitImageOf(own, "manager"), nil
}
