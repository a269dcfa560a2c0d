// Package simulation tests all rooms together: a model of the API server, the native controllers, kubelets and endpoints runs updates at random
// and judges every moment of them, and the planner's tests list exact steps.
//
// It may know everything, and nothing may know it: there is nothing but tests.
package simulation
