// Package audit says what Stayput would have done with the rollouts that a cluster remembers. It compares consecutive revisions of each
// workload by the rules of package inplace, and needs nothing of Stayput in the cluster.
//
// Counting (judge.go, report.go) is pure. Only reader.go asks the API server, and it only reads.
//
// What a history does not tell, an audit takes from today: the labels, annotations, strategy and replicas of the workload, and the labels
// of its namespace. Where the namespace has no label stayput.dev/update, the audit acts as if it were in-place.
package audit
