package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/concurrency"
)

// options are the command and the flags of the command line.
type options struct {
	command            func(context.Context, options) error
	namespace          string
	inPlaceAnnotations []string
	restartAnnotations []string
	excludedNamespaces []string
	restarting         int
	restartingPerNode  int
	restartingPer      []string
	limits             concurrency.Limits // what the last three say
	certificates       string
	clientCA           string
	webhookPort        int
	metricsAddress     string
	healthAddress      string
	pprofAddress       string
	log                zap.Options
}

var commands = map[string]func(context.Context, options) error{
	"manager": manage, "uninstall": uninstall, "check": runCheck, "wait": wait, "version": tellVersion,
}

// parse reads "[command] [flags]". If the user asks for help, it prints the usage and returns flag.ErrHelp.
func parse(arguments []string) (options, error) {
	name := "manager"
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		name, arguments = arguments[0], arguments[1:]
	}
	command, known := commands[name]
	if !known {
		return options{}, fmt.Errorf("unknown command %q; it is manager (the default), uninstall, check, wait or version", name)
	}
	o := options{command: command}
	if name == "wait" || name == "version" {
		if len(arguments) > 0 {
			return options{}, fmt.Errorf("unexpected argument %q: %s takes none", arguments[0], name)
		}
		return o, nil
	}
	flags := o.flags(name)
	if err := flags.Parse(arguments); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q: flags only", flags.Arg(0))
	}
	return o.complete()
}

// flags declares the flags of a command, with their defaults.
func (o *options) flags(command string) *flag.FlagSet {
	flags := flag.NewFlagSet("stayput "+command, flag.ContinueOnError)
	flags.StringVar(&o.namespace, "namespace", os.Getenv(envNamespace),
		"Stayput's own `namespace`, where its Lease lives; by default $POD_NAMESPACE")
	flags.Var((*list)(&o.inPlaceAnnotations), "in-place-annotations",
		"comma-separated `keys`, or prefix/*, of pod template annotations whose change needs no new pod; by default none, since many exist to force a restart")
	flags.Var((*list)(&o.restartAnnotations), "restart-annotations",
		"comma-separated `keys`, or prefix/*, of pod template annotations whose change restarts containers inside their pods, such as "+
			inplace.AnnotationRestartedAt)
	flags.Var((*list)(&o.excludedNamespaces), "excluded-namespaces",
		"comma-separated `namespaces` that are never managed, whatever their labels; kube-system and Stayput's own never are")
	flags.IntVar(&o.restarting, concurrency.FlagTotal, 0,
		"how many `pods` of all workloads restart at the same time, at most; 0 sets no limit")
	flags.IntVar(&o.restartingPerNode, concurrency.FlagPerNode, 0,
		"how many `pods` on one node restart at the same time, at most; 0 sets no limit")
	flags.Var((*list)(&o.restartingPer), concurrency.FlagPerTopology,
		"comma-separated `limits` of how many pods restart at the same time on nodes with the same value of a label, such as topology.kubernetes.io/zone=3")
	flags.StringVar(&o.certificates, "certificates", "/certificates",
		"`folder` of the webhooks' tls.crt and tls.key")
	flags.StringVar(&o.clientCA, "client-ca", "",
		"`file` with the CA that signs the client certificates of API servers, in PEM; with it the webhook port answers no other caller, and without it every one")
	flags.IntVar(&o.webhookPort, "webhook-port", 10250,
		"`port` the webhooks are served on, over TLS; firewalls of private clusters often let the API server reach only 443 and 10250")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":8080",
		"`address` of /metrics, plain HTTP; 0 serves none")
	flags.StringVar(&o.healthAddress, "health-address", ":8081",
		"`address` of /healthz and /readyz, plain HTTP")
	flags.StringVar(&o.pprofAddress, "pprof-address", "",
		"`address` of /debug/pprof, plain HTTP, to find what takes time or memory; by default none is served, since a profile shows what is in memory")
	o.log.BindFlags(flags)
	return flags
}

// complete checks the flags, and adds the namespaces that are always excluded.
func (o options) complete() (options, error) {
	if o.namespace == "" {
		return options{}, fmt.Errorf("--namespace is missing: set it, or $POD_NAMESPACE, to the namespace Stayput runs in")
	}
	for _, key := range o.inPlaceAnnotations {
		if err := inplace.CheckAnnotation(key); err != nil {
			return options{}, fmt.Errorf("--in-place-annotations: %w", err)
		}
	}
	for _, key := range o.restartAnnotations {
		if err := inplace.CheckRestartAnnotation(key); err != nil {
			return options{}, fmt.Errorf("--restart-annotations: %w", err)
		}
	}
	if err := o.readLimits(); err != nil {
		return options{}, err
	}
	for _, namespace := range []string{"kube-system", o.namespace} {
		if !slices.Contains(o.excludedNamespaces, namespace) {
			o.excludedNamespaces = append(o.excludedNamespaces, namespace)
		}
	}
	return o, nil
}

// readLimits reads the limits of how many pods restart at the same time, or returns what is wrong with them.
func (o *options) readLimits() error {
	for _, limit := range []concurrency.Limit{
		{Flag: concurrency.FlagTotal, Most: o.restarting}, {Flag: concurrency.FlagPerNode, Most: o.restartingPerNode},
	} {
		if limit.Most < 0 {
			return fmt.Errorf("--%s: %d is no number of pods; use 1 or more, or 0 for no limit", limit.Flag, limit.Most)
		}
		if limit.Most > 0 {
			o.limits = append(o.limits, limit)
		}
	}
	for _, text := range o.restartingPer {
		limit, err := concurrency.PerTopology(text)
		if err != nil {
			return fmt.Errorf("--%s: %w", concurrency.FlagPerTopology, err)
		}
		if slices.ContainsFunc(o.limits, func(known concurrency.Limit) bool { return known.TopologyKey == limit.TopologyKey }) {
			return fmt.Errorf("--%s: %s is there twice; name each label once", concurrency.FlagPerTopology, limit.TopologyKey)
		}
		o.limits = append(o.limits, limit)
	}
	return nil
}

// list is a flag of comma-separated values. If the flag is repeated, its values are added.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(value string) error {
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			*l = append(*l, item)
		}
	}
	return nil
}
