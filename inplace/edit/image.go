package edit

import (
	"github.com/distribution/reference"

	"github.com/stayput/stayput/inplace/findings"
)

// imageName is what the name of an image says.
type imageName struct {
	full   string // see NormalImage
	latest bool   // see IsLatest
}

// ofImages are names of images, as templates have them and container runtimes report them.
var ofImages findings.Findings[string, imageName]

// SameImage compares the name a container runtime reports with the one a template has, each with what it leaves out.
func SameImage(a, b string) bool { return a != "" && (a == b || NormalImage(a) == NormalImage(b)) }

// NormalImage is the name in full: with registry, and with a digest or else a tag. Where there are both, the digest alone says which image it
// is, and nodes list it without the tag. What is no name stays as it is.
func NormalImage(image string) string { return imageNameOf(image).full }

// IsLatest reports whether the image is pulled always, if nobody says otherwise (ParseImageName in pkg/util/parsers of Kubernetes).
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
