// Package neighbours tests what pages of docs/how-to say about other projects against those projects' own code.
//
// Each folder has the tests against one neighbour. Its code comes from the Go module proxy. A neighbour whose requirements do not go
// together with the others' is in a module of its own. inputs/ has objects of the test cluster, as kubectl get -o json printed them.
//
// make neighbours runs the tests. They are no part of make test: what they compile is many times as large as Stayput.
package neighbours
