// Command stayput updates native Kubernetes workloads in place.
//
//	stayput [manager] [flags]   serve the webhooks and, as the leader, carry out updates; the default
//	stayput uninstall [flags]   have the managers leave and the API server ask nobody, then give every update back to the native controllers;
//	                            what uninstalling begins with
//	stayput check [flags]       say whether Stayput works: leader, certificate, webhooks, port, policies; fails if not
//	stayput wait                do nothing until told to end: what the pods run that have nodes pull images
//	stayput version             say which build this is
package main
