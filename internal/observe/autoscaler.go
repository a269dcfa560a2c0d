package observe

import (
	"context"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/steps"
)

// mostScalers bounds how many autoscalers of a namespace are looked at. A namespace has about as many autoscalers as
// workloads.
const mostScalers = 200

// AboutAutoscalers returns one line about the first autoscaler that would count as load what the workload's containers
// use to start, when this change restarts them. It returns "" if there is no such autoscaler.
func (k Kind) AboutAutoscalers(ctx context.Context, r Reader, key types.NamespacedName, change edit.Change) (string, error) {
	if !k.Scaled || !change.Restarts() {
		return "", nil
	}
	var about string
	left := mostScalers
	err := r.eachPage(ctx, &autoscalingv2.HorizontalPodAutoscalerList{}, func(item runtime.Object) error {
		scaler, ok := item.(*autoscalingv2.HorizontalPodAutoscaler)
		if !ok {
			return fmt.Errorf("%T in a list of autoscalers", item)
		}
		about = steps.AboutAutoscaler(scaler, steps.ScaleTarget{Kind: k.Workload.Name, Name: key.Name}, change)
		if left--; about != "" || left == 0 {
			return errEnough
		}
		return nil
	}, client.InNamespace(key.Namespace))
	if err != nil && !errors.Is(err, errEnough) {
		return "", fmt.Errorf("list HorizontalPodAutoscalers of namespace %s: %w", key.Namespace, err)
	}
	return about, nil
}
