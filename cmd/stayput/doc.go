// Command stayput updates native Kubernetes workloads in place.
//
//	stayput [manager] [flags]   serve the webhooks and, as the leader, carry out updates; the default
//	stayput uninstall [flags]   stop the managers, remove the webhooks and policies, then leave every update to the native controllers;
//	                            run it before deleting anything
//	stayput check [flags]       check the cluster and the installation, as kubectl stayput check does; fail if something is wrong
//	stayput wait                do nothing until it is stopped; pre-pull pods run this
//	stayput version             print the version and the commit
package main
