// Package allowance gives each allowance of a PodDisruptionBudget to one pod only. The leader plans several workloads at the same time, on
// a cache that lags. Two of them may have pods that the same PodDisruptionBudget selects, and each plan may take its last allowance.
//
// So before pods are taken out of service, one Room decides for all workloads. It reads the PodDisruptionBudgets from the API server, where
// evictions that were granted up to now are counted. It counts pods in the cache, and besides those that it gave an allowance to, until the
// cache shows what was written to them. Which pods need one, and what a PodDisruptionBudget allows, is decided in inplace/disruption.
//
// What is given is dropped only if the pods that are counted then are at least as new as what was written. Otherwise a pod whose write
// appears in the cache in between would count nowhere.
//
// # Memory
//
// A new leader does not know what the one before has written last. So it reads the pods of a namespace from the API server once. Pods of
// which its cache is older count as taken until it is not.
package allowance
