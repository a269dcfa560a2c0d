// Package allowance gives each place under a limit, and each allowance of a PodDisruptionBudget, to one pod only. The leader plans several
// workloads at the same time, on a cache that lags, and each plan may take the last place.
//
// So before pods are taken out of service, one Broker reserves room for them. It reads the PodDisruptionBudgets from the API server, where
// evictions that were granted up to now are counted. It counts pods in the cache, and besides those that it reserved room for, until the
// cache shows what was written to them. Which pods need room, and what is left, is decided in inplace/disruption and inplace/concurrency.
//
// # Who is next
//
// Under a limit, the workload that has waited longest. When there is room, it is woken, and the room is kept for it for a moment. Every
// count wakes, and every workload that waits looks again by itself. So it is never forgotten, and what is late is found.
//
// # Memory
//
// A new leader does not know what the one before has written last, and its cache need not show it. So under limits or PodDisruptionBudgets
// it takes no pod out of service that serves in the first five seconds.
package allowance
