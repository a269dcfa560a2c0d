// Package configuration restarts containers when configuration that they use has changed, where users ask for it. It runs on the leader
// only. It watches the ConfigMaps (their metadata) and Certificates of a namespace as long as a workload there follows any, and nothing
// otherwise. Package inplace/configuration decides.
//
// Whether it may watch them is up to the rights that Stayput was given there: the ClusterRole stayput-configuration-reload, for the whole
// cluster or for single namespaces.
//
// It remembers when a workload's last restart was. A new leader may restart its containers sooner than the last one would have.
package configuration
