// Package machine is what the cluster needs and changes on the machine outside its own directory: bridges, routes,
// nftables, cgroups, sysctls and mounts. Whatever it sets up, it takes away again.
package machine
