package verdict

import "k8s.io/apimachinery/pkg/util/version"

// exception is a test that contradicts a promise of Stayput. It must fail, and in the way that follows from the promise.
type exception struct {
	Test string
	// Contradicts is the sentence of docs/explanation/limits.md that the test contradicts, and How says in which way.
	Contradicts, How string
	// Event is the reason of the event that Stayput emits when it keeps the promise.
	Event string
	// Since is the first release of the exception.
	Since *version.Version
}

// imageVolumes is the first release whose nodes can pull an image before a container stops.
var imageVolumes = version.MustParseGeneric("1.35")

var exceptions = []exception{
	{
		Test:        "Deployment deployment should support proportional scaling",
		Contradicts: "A bad image stops nothing",
		How:         "sets an image that does not exist, and waits until two of ten pods are down for it",
		Event:       "ImagePullFailed",
		Since:       imageVolumes,
	},
	{
		Test:        "Daemon set should rollback without unnecessary restarts",
		Contradicts: "A bad image stops nothing",
		How:         "sets an image that does not exist, and waits until a pod is down for it",
		Event:       "ImagePullFailed",
		Since:       imageVolumes,
	},
}

// exceptionsOf returns the exceptions of a release, by test.
func exceptionsOf(kubernetes *version.Version) map[string]exception {
	of := map[string]exception{}
	for _, each := range exceptions {
		if kubernetes.AtLeast(each.Since) {
			of[each.Test] = each
		}
	}
	return of
}
