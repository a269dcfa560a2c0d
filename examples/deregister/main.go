// Command deregister shows how the controller of a load balancer that targets pods by IP works together with Stayput.
//
// Its load balancer is a ConfigMap: a target is an entry, with the name of a pod and its address. While a pod is a target, it has the
// annotation of a pre-restart hook. When Stayput takes the pod out of service, this program deregisters it first, and then removes the
// annotation. Containers of the pod restart only after that.
package main

import (
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	namespace := flag.String("namespace", "default", "the namespace of the pods and of the ConfigMap")
	selector := flag.String("selector", "", "which pods are targets, as for kubectl get pods -l")
	targets := flag.String("targets", "targets", "the name of the ConfigMap, which must exist")
	flag.Parse()
	if err := run(*namespace, *selector, *targets); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(namespace, selector, targets string) error {
	ctrl.SetLogger(zap.New())
	selected, err := labels.Parse(selector)
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}},
			ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: selected}}},
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	r := &registrar{Client: manager.GetClient(), targets: configMapTargets{manager.GetClient(), namespace, targets}}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).Complete(r); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
