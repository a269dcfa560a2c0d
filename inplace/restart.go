package inplace

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// AnnotationRestartedAt is what `kubectl rollout restart` sets on a template (k8s.io/kubectl/pkg/polymorphichelpers/objectrestarter.go).
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// Restarting are the rules for a workload with those annotations. A list of keys that does not parse is rejected at admission
// (manifests/base/policy.yaml); where it gets past that, it counts as absent.
func (r Rules) Restarting(settings Settings, annotations map[string]string) Rules {
	r.RestartInPlace = settings.Restart
	if more, err := ParseKeys(annotations[AnnotationRestartAnnotations]); err == nil {
		r.Restart = slices.Concat(r.Restart, more)
	}
	return r
}

// Restarts tells whether a change of that annotation asks for a restart.
func (r Rules) Restarts(annotation string) bool {
	return annotation == AnnotationRestartedAt || slices.ContainsFunc(r.Restart, func(key string) bool {
		prefix, all := strings.CutSuffix(key, "*")
		return key == annotation || all && strings.HasPrefix(annotation, prefix)
	})
}

// KeysPattern is what a list of annotation keys looks like, and longestKeys how many characters it has at most. manifests/base/policy.yaml says the
// same.
const (
	KeysPattern = `^ *` + keyPattern + `( *, *` + keyPattern + `)* *$`
	keyPattern  = `(` + prefixPattern + `/[*]|(` + prefixPattern + `/)?` + namePattern + `)`
	longestKeys = 1024

	prefixPattern = `[a-z0-9]([-a-z0-9.]*[a-z0-9])?`
	namePattern   = `[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?`
)

var keysPattern = regexp.MustCompile(KeysPattern)

// ParseKeys reads a comma-separated list of annotation keys, or of all with a prefix: `prefix/*`.
func ParseKeys(text string) ([]string, error) {
	if len(text) > longestKeys || !keysPattern.MatchString(text) {
		return nil, fmt.Errorf("%.100q is no list of annotation keys of up to %d characters", text, longestKeys)
	}
	keys := strings.Split(text, ",")
	for i := range keys {
		keys[i] = strings.TrimSpace(keys[i])
	}
	return keys, nil
}
