// Package nodes says what is known of a node's kubelet: whether it answers, and how old it is.
//
// What that means for pods there differs by kind and moment, and is for those who ask.
package nodes
