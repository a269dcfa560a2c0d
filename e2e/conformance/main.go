// Command conformance compares the results of Kubernetes' own end-to-end tests of Deployments, ReplicaSets, DaemonSets, StatefulSets and
// ControllerRevisions. They ran once natively and once in namespaces with Stayput's labels. Those tests are this package's own test binary.
//
// This is a module of its own, with a go.mod for each release of Kubernetes: the tests are those of the cluster's release, unchanged.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/stayput/stayput/e2e/conformance/verdict"
)

func main() {
	some := flag.Bool("some", false, "only some of the tests were asked for")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "conformance takes two of ginkgo's JSON reports: of the native run, and of that in place")
		os.Exit(2)
	}
	runs, err := verdict.Read(flag.Arg(0), flag.Arg(1))
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
	runs.Table(os.Stdout)
	if !runs.Judge(os.Stdout, *some) {
		os.Exit(1)
	}
}
