package main

import (
	"flag"
	"os"
	"testing"

	"k8s.io/kubernetes/test/e2e"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"

	// The tests, the imports that they need in any test binary, and the freeze of the features that they name.
	_ "k8s.io/kubernetes/test/e2e/apps"
	_ "k8s.io/kubernetes/test/e2e/feature"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
)

// TestMain reads the flags of upstream's test binary, and one of Stayput's.
func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Var(namespaces.labels, "namespace-label", "KEY=VALUE, a label that the namespaces of the tests get; may be given several times")
	flag.Parse()
	framework.TestContext.CreateTestingNS = namespaces.create
	framework.NewFrameworkExtensions = append(framework.NewFrameworkExtensions, namespaces.record)
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestUpstream(t *testing.T) {
	e2e.RunE2ETests(t)
}
