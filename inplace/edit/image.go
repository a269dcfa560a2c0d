package edit

import (
	"strings"

	"github.com/distribution/reference"

	"github.com/stayput/stayput/inplace/apps"
)

// imageName is what the name of an image says.
type imageName struct {
	full   string // see NormalImage
	latest bool   // see IsLatest
}

// ofImages remembers parsed names of images, as templates have them and as container runtimes report them.
var ofImages apps.Findings[string, imageName]

// SameImage reports whether two names name the same image. One may be the name that a container runtime reports, the other the one
// in a template. Each may leave out parts.
func SameImage(a, b string) bool { return a != "" && (a == b || NormalImage(a) == NormalImage(b)) }

// NormalImage returns the name in full: with its registry, and with a digest or else a tag. If there are both, the digest alone
// identifies the image, and nodes list it without the tag. A text that is not a name is returned unchanged.
func NormalImage(image string) string { return imageNameOf(image).full }

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
func IsLatest(image string) bool { return imageNameOf(image).latest }

func imageNameOf(image string) imageName {
	return ofImages.Of(image, len(image), func() imageName { return parseImage(image) })
}

func parseImage(image string) imageName {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return imageName{full: image}
	}
	full, err := reference.ParseDockerRef(image)
	if err != nil {
		return imageName{full: image}
	}
	tagged, isTagged := reference.TagNameOnly(named).(reference.Tagged)
	return imageName{full: full.String(), latest: isTagged && tagged.Tag() == "latest"}
}
