// Package creation changes objects while they are created. Pods get Stayput's readiness gate, which cannot be added later. ReplicaSets
// get no replicas, so that live pods can move to them. Marks that a template may contain are removed.
//
// It sees one object and knows of no update: webhooks call it for every creation, and it must answer without reading anything.
package creation
