// Package births says what an object gets while it is created: pods our readiness gate, which cannot be added later; ReplicaSets no replicas,
// so that live pods can move to them; and none of them the marks that a template may have brought along.
//
// It sees one object and no update: the webhooks ask it in every birth, and it must have an answer without reading anything.
package creation
