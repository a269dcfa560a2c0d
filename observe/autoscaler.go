package observe

import (
	"context"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/edit"
)

// mostScalers bounds how many autoscalers of a namespace are looked at. A namespace has about as many autoscalers as
// Deployments.
const mostScalers = 200

// AboutAutoscalers returns one line about the first autoscaler that would count as load what the Deployment's
// containers use to start, when this change restarts them. It returns "" if there is no such autoscaler. DaemonSets
// have no autoscalers.
func (r Reader) AboutAutoscalers(ctx context.Context, d *apps.Deployment, change edit.Change) (string, error) {
	if !change.Restarts() {
		return "", nil
	}
	var about string
	left := mostScalers
	err := r.eachPage(ctx, &autoscalingv2.HorizontalPodAutoscalerList{}, func(item runtime.Object) error {
		scaler, ok := item.(*autoscalingv2.HorizontalPodAutoscaler)
		if !ok {
			return fmt.Errorf("%T in a list of autoscalers", item)
		}
		about = deployments.AboutAutoscaler(scaler, d, change)
		if left--; about != "" || left == 0 {
			return errEnough
		}
		return nil
	}, client.InNamespace(d.Namespace))
	if err != nil && !errors.Is(err, errEnough) {
		return "", fmt.Errorf("list HorizontalPodAutoscalers of namespace %s: %w", d.Namespace, err)
	}
	return about, nil
}
