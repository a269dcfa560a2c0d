package edit

import (
	"strings"

	"github.com/distribution/reference"

	"github.com/stayput/stayput/inplace/apps"
)

// ofImages remembers full names of images, by their names in templates or as container runtimes report them.
var ofImages apps.Findings[string, string]

// SameImage reports whether two names name the same image. One may be the name that a container runtime reports, the other the one
// in a template. Each may leave out parts.
func SameImage(a, b string) bool { return a != "" && (a == b || NormalImage(a) == NormalImage(b)) }

// NormalImage returns the name in full: with its registry, and with a digest or else a tag. If there are both, the digest alone
// identifies the image, and nodes list it without the tag. A text that is not a name is returned unchanged.
func NormalImage(image string) string {
	return ofImages.Of(image, len(image), func() string {
		full, err := reference.ParseDockerRef(image)
		if err != nil {
			return image
		}
		return full.String()
	})
}

// Repository returns the name as it is written, without tag and digest: trimImageTagDigest in pkg/kubelet/images/pullmanager of Kubernetes.
func Repository(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		return name[:colon]
	}
	return name
}

// IsLatest reports whether the kubelet always pulls the image if no pull policy is set (ParseImageName in pkg/util/parsers of
// Kubernetes).
func IsLatest(image string) bool {
	named := parseName(image)
	return named != nil && tagOf(named) == "latest"
}
