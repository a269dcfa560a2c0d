package main

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace/concurrency"
)

func TestParseDefaults(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "stayput-system")
	o, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.webhookPort != 10250 || o.namespace != "stayput-system" || len(o.inPlaceAnnotations) != 0 {
		t.Errorf("parse() = %+v, want port 10250, namespace stayput-system and no annotations", o)
	}
	if o.pprofAddress != "" {
		t.Errorf("profiles are served on %s by default", o.pprofAddress)
	}
	if want := []string{"kube-system", "stayput-system"}; !slices.Equal(o.excludedNamespaces, want) {
		t.Errorf("excluded namespaces = %v, want %v", o.excludedNamespaces, want)
	}
}

func TestManagerServesProfilesWhereItIsTold(t *testing.T) {
	o, err := parse([]string{"--namespace=own", "--pprof-address=127.0.0.1:6060"})
	if err != nil || o.pprofAddress != "127.0.0.1:6060" {
		t.Errorf("parse() = %q, %v", o.pprofAddress, err)
	}
}

func TestParseAddsToExcludedNamespaces(t *testing.T) {
	o, err := parse([]string{"uninstall", "--namespace=own", "--excluded-namespaces=a, kube-system", "--excluded-namespaces=b"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "kube-system", "b", "own"}; !slices.Equal(o.excludedNamespaces, want) {
		t.Errorf("excluded namespaces = %v, want %v", o.excludedNamespaces, want)
	}
}

func TestCommandsThatNeedNothing(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	for _, command := range []string{"wait", "version"} {
		if _, err := parse([]string{command}); err != nil {
			t.Error(err)
		}
		if _, err := parse([]string{command, "--namespace=own"}); err == nil || !strings.Contains(err.Error(), command) {
			t.Errorf("%s with flags: %v, want an error that names it", command, err)
		}
	}
}

func TestParseLimits(t *testing.T) {
	o, err := parse([]string{"--namespace=own", "--max-restarting-pods=10", "--max-restarting-pods-per-node=1",
		"--max-restarting-pods-per-topology=topology.kubernetes.io/zone=3,rack=2"})
	want := concurrency.Limits{{Flag: "max-restarting-pods", Most: 10}, {Flag: "max-restarting-pods-per-node", Most: 1},
		{Flag: "max-restarting-pods-per-topology", TopologyKey: "topology.kubernetes.io/zone", Most: 3},
		{Flag: "max-restarting-pods-per-topology", TopologyKey: "rack", Most: 2}}
	if got := o.limits; err != nil || !slices.Equal(got, want) {
		t.Errorf("limits are %v, want %v, %v", got, want, err)
	}
	if o, err := parse([]string{"--namespace=own"}); err != nil || o.limits != nil {
		t.Errorf("by default limits are %v, %v", o.limits, err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"an unknown command":      {[]string{"update"}, "manager"},
		"an unknown flag":         {[]string{"--port=1"}, "port"},
		"an argument after flags": {[]string{"--namespace=own", "uninstall"}, "uninstall"},
		"no namespace":            {nil, "POD_NAMESPACE"},
		"an impossible key":       {[]string{"--namespace=own", "--in-place-annotations=a b"}, "a b"},
		"a restart annotation": {
			[]string{"--namespace=own", "--in-place-annotations=kubectl.kubernetes.io/*"}, "kubectl.kubernetes.io/restartedAt"},
		"a key that is no restart annotation": {[]string{"--namespace=own", "--restart-annotations=a/*,b/c,*"}, `"*"`},
		"a negative limit":                    {[]string{"--namespace=own", "--max-restarting-pods=-1"}, "use 1 or more, or 0 for no limit"},
		"no limit for a zone": {
			[]string{"--namespace=own", "--max-restarting-pods-per-topology=zone"}, "write topology.kubernetes.io/zone=3",
		},
		"two limits for a zone": {
			[]string{"--namespace=own", "--max-restarting-pods-per-topology=zone=1,zone=2"}, "zone is there twice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(test.arguments); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("parse(%q) = %v, want an error with %q", test.arguments, err, test.want)
			}
		})
	}
}

func TestParseHelp(t *testing.T) {
	if _, err := parse([]string{"-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("parse(-h) = %v, want %v", err, flag.ErrHelp)
	}
}
