package replicas

// Idle is how many pods its controller deletes before any that is Ready (getPodsToDelete in
// pkg/controller/replicaset/replica_set.go). A pod whose kubelet has not seen that its gate is closed is Ready to it like others.
func (s *Set) Idle() int {
	return max(0, s.Size()-len(s.Pods)+s.Unready())
}
