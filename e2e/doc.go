// Package e2e proves Stayput from outside: on a running cluster with Stayput installed it does what users do and judges every
// watch event on the way. Nothing here imports the product, but for stale_test.go, which makes the very write that must come too late, and
// changes_random_test.go, which asks it for the writes that an API server is to take.
//
// The scenarios carry the build tag e2e, since they need that cluster: `make e2e RUN=undo` starts it, installs and runs them.
//
//	recorder_test.go   records every event of a namespace and waits for states
//	world_test.go      what the events add up to: who owns which pod, is it ready, is it where it should be
//	judge_test.go      the promises, judged at every event; judge_check_test.go shows that each can be broken
//	judge_puller_*.go  the same for pods that pull images and pods that are borrowed
//	load               requests at a fixed rate, for serving_test.go and demo.sh: no update in place loses one
//	lastendpoint_*.go  where a pod waits for its drain, and where it does not since nobody could stand in for it
//	pacing_test.go     what need not be waited for: drains of pods to which nobody is sent, pods that could never be borrowed
//	partition_test.go  updates that wait with some pods updated until they are let go on
//	timeline_test.go   what is printed when a test fails, with diagnosis_test.go
//	scenario_test.go   what a user does: create, edit, wait
//	changes            the table of docs/changes.md; changes_test.go makes each change, in both kinds
//	daemonset_*.go     the same for DaemonSets, where they differ, and their scenarios
//	meeting_test.go    what disturbs everybody, a Deployment and a DaemonSet at once; leader_test.go, in each phase of a pod's way
//	meanwhile_test.go  what happens while a change of each kind is half-way: a row for each
//	bench_test.go      what an update costs beside a native one, and beside pods that the bench itself patches (build tag bench, `make bench`)
//	bench_side_test.go one way to update, and what it costs; bench_floor_test.go, the least it can cost
//	metrics_test.go    what managers and the API server tell of themselves at /metrics
//	report             the page that is made of the figures: docs/performance.md
package e2e
