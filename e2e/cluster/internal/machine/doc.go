// Package machine has what the cluster needs and changes on the machine outside its own directory: bridges, routes, nftables, cgroups,
// sysctls and mounts. It removes everything that it sets up.
package machine
