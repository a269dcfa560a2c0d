// Package check says whether a cluster is right for Stayput, and whether Stayput works there. What it tries out, it tries in dry runs. It
// writes nothing, apart from the proof, which it makes only when asked. kubectl stayput check and stayput check run the same code; helm
// test runs the latter.
//
// A topic passes and says what was found, or it has findings. A finding says what is wrong and what would mend it. What another tool says
// well is left to it: a finding then has its message and its command. What follows from another finding is not found again.
package check
