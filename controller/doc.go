// Package controller carries out in-place updates. The leader reads a workload with its revisions and
// pods, asks package inplace for the next steps, and writes them one guarded patch at a time. It records events and
// metrics only after the writes.
//
// What a process keeps in memory never decides anything that a restarted process would decide otherwise. A process
// remembers what it wrote only until the cache shows it. It remembers which events it recorded only so that it does not
// repeat them. It remembers since when a pod is out of service only so that the wait of a drain ends; after a restart
// that wait begins anew. It remembers which workloads wait for limits, and since when, only so that each has its turn.
//
// The packages below: kinds has what differs between kinds of workloads. allowance, drain, report and write do
// parts of a reconcile. shutdown is for processes that end, and for uninstalling. Each imports those it needs, and never
// this package, where a reconcile puts them together.
package controller
