// Package simulation tests all packages of inplace together. A model of the API server, the native controllers, kubelets and EndpointSlices
// runs updates at random and checks every moment of them. The planner's tests list exact steps.
//
// It may import every package under inplace, and no package may import it. It has only tests.
package simulation
