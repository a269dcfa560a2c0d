// Package check says whether a cluster is right for Stayput, and whether Stayput works there. kubectl stayput check and stayput check
// are the same code. helm test runs the latter.
//
// Judging is pure: Judge makes a Report of Facts (judge*.go). Only Reader asks the API server (reader*.go). It writes nothing: what it
// tries out, it tries in dry runs.
//
// A check has topics. Each of them passes, and says what was found; or it has findings. A finding says what is wrong and what mends it.
// What follows from another finding is not found again: without managers, no webhook answers.
package check
