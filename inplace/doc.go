// Package inplace holds every decision Stayput takes: what an edit of a pod template changes, whether running pods
// can take it, whose turn it is, which single step comes next and what the status is meanwhile.
//
// It is pure: no client, no clock, no logger. Callers hand it what they have read and carry out what it answers.
package inplace
