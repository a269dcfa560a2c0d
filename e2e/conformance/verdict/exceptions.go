package verdict

// exception is a test that contradicts a promise of Stayput. It must fail, and in the way that follows from the promise.
type exception struct {
	// Contradicts is the sentence of docs/explanation/limits.md that the test contradicts, and How says in which way.
	Contradicts, How string
	// Event is the reason of the event that Stayput emits when it keeps the promise.
	Event string
}

// exceptions are by test.
var exceptions = map[string]exception{
	"Deployment deployment should support proportional scaling": {
		Contradicts: "A bad image stops nothing",
		How:         "sets an image that does not exist, and waits until two of ten pods are down for it",
		Event:       "ImagePullFailed",
	},
	"Daemon set should rollback without unnecessary restarts": {
		Contradicts: "A bad image stops nothing",
		How:         "sets an image that does not exist, and waits until a pod is down for it",
		Event:       "ImagePullFailed",
	},
}
