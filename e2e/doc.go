// Package e2e tests Stayput from outside. On a running cluster with Stayput installed, the tests do what users do, and a judge
// (judge_test.go) checks every watch event against Stayput's promises. The package does not import the product, with two exceptions:
// stale_test.go makes the very writes that must come too late, and changes_random_test.go asks the product for the writes that an API
// server has to accept.
//
// The scenarios have the build tag e2e, since they need that cluster: `make e2e RUN=undo` starts it, installs Stayput and runs them.
//
//	recorder_test.go   records every event of a namespace and waits for states
//	world_test.go      the state that the events add up to: owner, readiness and availability of each pod
//	judge_test.go      checks the promises at every event; judge_check_test.go shows that each can be broken
//	judge_prepull_*.go the same for pre-pull pods and surge pods
//	load               requests at a fixed rate, for serving_test.go and demo.sh: no update in place loses one
//	ready_test.go      how a pod is kept out of service while managers answer, and comes back by its kubelet where none does
//	lastendpoint_*.go  where a pod waits for its drain, and where it serves until it stops because no other pod could take over
//	pacing_test.go     what an update need not wait for: drains of pods that no Service selects, surge pods that cannot be scheduled
//	ownpower_test.go   that each policy about Stayput's service account is in force; manifests/cel has what the policies refuse
//	partition_test.go  updates that stop at a partition until it is lowered
//	timeline_test.go   what is printed when a test fails, with diagnosis_test.go
//	scenario_test.go   what a user does: create, edit, wait
//	changes            the table of docs/reference/changes.md; changes_test.go makes each change, in each kind
//	daemonset_*.go     the same for DaemonSets, where they differ, and their scenarios
//	statefulset_*.go   the same for StatefulSets; statefulset_halfway_test.go has one of each pod management policy in every scenario
//	meeting_test.go    failures of shared components, with a Deployment and a DaemonSet; leader_test.go, in each phase of a pod's update
//	examples_test.go   each file of examples is applied, and updated by the commands in its comment
//	hooks_test.go      pods that wait for another controller, which examples/deregister is
//	pages_test.go      the commands of README and tutorials; reader_test.go runs them, and pages reads them out of the pages
//	meanwhile_test.go  what happens while a change of each kind is in progress: a row for each
//	bench_test.go      the cost of an update, beside a native one and pods that the bench itself patches (build tag bench, `make bench`)
//	bench_side_test.go one way to update, and its cost; bench_floor_test.go, the least possible cost
//	metrics_test.go    the metrics of the managers and the API server at /metrics
//	killed_test.go     updates whose managers are killed for good (build tag removal, `make e2e-killed`)
//	faults*_test.go    faults in the middle of updates, beside native ones (build tag faults); soak_test.go, a fleet for hours (soak)
//	budgets_test.go    updates under PodDisruptionBudgets
//	systems_*.go       etcd and NATS on volumes that have to be attached, in place beside native (build tag systems, `make e2e-systems`)
//	prometheus*_test.go an upgrade by the Prometheus operator, which e2e/operators builds; lws_test.go has LeaderWorkerSet
//	systems            those systems, a CSI driver and the writer, in a module of their own; outage_test.go counts the members that serve
//	report             makes docs/explanation/performance.md of the figures, and docs/dashboard.svg of what a Prometheus scraped
//	recording          makes docs/recording.svg and docs/watch.svg of real updates
package e2e
