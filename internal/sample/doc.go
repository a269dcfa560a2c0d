// Package sample has templates and names for the tests of several packages, and the native comparison of templates, with which Stayput's
// is compared. Only tests may import it.
package sample
