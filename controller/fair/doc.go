// Package fair has the queue of the controllers. In it a namespace with much work delays only its own requests.
package fair
