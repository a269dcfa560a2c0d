// Command stayput updates native Kubernetes workloads in place.
//
//	stayput [manager] [flags]   serve the webhooks and, as the leader, carry out updates; the default
//	stayput release [flags]     give every update back to the native controllers and end; part of uninstalling
//	stayput wait                do nothing until told to end: what the pods run that have nodes pull images
//	stayput version             say which build this is
package main
