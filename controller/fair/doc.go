// Package fair has the queue of the controllers. In it a namespace with much work delays only its own requests.
//
// Each controller works on sixteen requests at a time, at most four of them of one namespace, and namespaces take turns:
// see workers and share in controller/setup.go.
package fair
