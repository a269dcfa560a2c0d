// Package kinds has other names of what packages observe and engine have of kinds.
package kinds

import (
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/internal/observe"
)

// All, Deployments and DaemonSets are those of package observe.
var (
	All         = observe.Kinds
	Deployments = observe.Deployments
	DaemonSets  = observe.DaemonSets
)

type (
	// Kind is an observe.Kind.
	Kind = observe.Kind
	// Rollout is an engine.Rollout.
	Rollout = engine.Rollout
	// Deployment is the rollout of a Deployment.
	Deployment struct{ *deployments.Rollout }
)

// Marked is engine.Marked.
func Marked(r Rollout) bool { return engine.Marked(r) }
