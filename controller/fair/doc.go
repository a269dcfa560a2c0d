// Package fair has the queue of the controllers. In it a namespace with much work delays only its own requests.
//
// Each controller works on 32 requests at a time, at most eight of them of one namespace, and namespaces take turns. Eight
// workers are kept for namespaces that none is busy with, so these wait for no others: see workers in controller/setup.go.
package fair
