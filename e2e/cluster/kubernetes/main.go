// Command kubernetes is the control plane, kubelet, kube-proxy and etcd in one binary, because linking them one by one takes minutes. It
// runs the component whose name it is called by: if it is called by a link kube-apiserver, it is the API server. Nothing in these
// components is changed.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // kube-apiserver and kube-controller-manager need time zones for CronJobs

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components are the main functions of k8s.io/kubernetes/cmd and of etcd.
var components = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          run(apiserver.NewAPIServerCommand),
	"kube-controller-manager": run(controllermanager.NewControllerManagerCommand),
	"kube-proxy":              run(proxy.NewProxyCommand),
	"kube-scheduler":          run(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 run(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
}

func main() {
	name := filepath.Base(os.Args[0])
	component, known := components[name]
	if !known {
		names := strings.Join(slices.Sorted(maps.Keys(components)), ", ")
		fmt.Fprintf(os.Stderr, "called as %s; link this binary to the name of a component: %s\n", name, names)
		os.Exit(2)
	}
	component()
}

func run(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}
