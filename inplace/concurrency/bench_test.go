package concurrency

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// queue returns 300 workloads in 20 namespaces with 100 pods each that wait, spread over so many nodes in four zones.
func queue(nodes int) []Request {
	var waiting []Request
	for w := range 300 {
		request := Request{Workload: types.UID(fmt.Sprint("w", w)), Namespace: fmt.Sprint("n", w%20), Started: now, Most: 25}
		for p := range 100 {
			node := (w*7 + p) % nodes
			request.Pods = append(request.Pods, Pod{UID: types.UID(fmt.Sprint("w", w, "-", p)), Namespace: request.Namespace,
				Node: fmt.Sprint("node-", node), Labels: map[string]string{zone: fmt.Sprint("z", node%4)}})
		}
		waiting = append(waiting, request)
	}
	return waiting
}

// BenchmarkDivide is what one division costs where many pods wait: the leader makes one with each plan that takes pods out of service.
func BenchmarkDivide(b *testing.B) {
	perNode := Limit{Flag: FlagPerNode, Most: 1}
	for name, limits := range map[string]Limits{
		"total":            {{Flag: FlagTotal, Most: 10}},
		"per node":         {perNode},
		"per node, zone":   {perNode, {Flag: FlagPerTopology, TopologyKey: zone, Most: 20}},
		"ten on each node": {{Flag: FlagPerNode, Most: 10}},
	} {
		b.Run(name, func(b *testing.B) {
			seen := Seen{Limits: limits, Requests: queue(1000)}
			for b.Loop() {
				seen.Divide()
			}
		})
	}
}
