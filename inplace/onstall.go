package inplace

const (
	// LabelOnStall says what becomes of an update in place of a Deployment that has exceeded `progressDeadlineSeconds`: `undo` takes the
	// template back to the revision before, as `kubectl rollout undo` does, once for each template; `wait`, the default, leaves it as it is.
	//
	// Only a Deployment has such a deadline. The template is the user's, so this label is the only thing that lets Stayput write it: see
	// deployments/onstall.go.
	LabelOnStall = "stayput.dev/on-stall"

	// OnStallUndo is the value of LabelOnStall that asks for an undo.
	OnStallUndo = "undo"
	// OnStallWait is its other value.
	OnStallWait = "wait"
)
