package edit

import (
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// A kubelet restarts a container when the text of its name or image differs from the text with which the container was started
// (HashContainer in pkg/kubelet/container/helpers.go). So a container that is to restart unchanged gets another name of its image.
// Kubernetes 1.34 to 1.37 have no other way to restart a container of a live pod: restart rules cannot be added to a live pod, and
// there is no subresource.

// IsNameOf reports whether a container with that name runs what a template with that image asks for: the same image in another
// spelling, or with the digest that it had when the container was restarted. Stayput compares images by it wherever it asks whether a pod
// has what its template says, except on the way back.
func IsNameOf(name, image string) bool {
	if name == image {
		return true
	}
	have, want := parseName(name), parseName(image)
	if have == nil || want == nil || have.Name() != want.Name() {
		return false
	}
	if digest := digestOf(want); digest != "" {
		return digestOf(have) == digest && (tagOf(have) == "" || tagOf(have) == tagOf(want))
	}
	return tagOf(have) == tagOf(want)
}

// anotherName returns the first name of the image that the container of a pod does not have. It is empty if there is none. The
// image is that of the template, and running is the ID of the image that runs. Names that running does not confirm are not used.
func anotherName(container *corev1.Container, image, running string) string {
	names := namesOf(image, running, pullsAlways(container.ImagePullPolicy, image))
	at := slices.IndexFunc(names, func(name string) bool { return name != container.Image })
	if at < 0 {
		return ""
	}
	return names[at]
}

// namesOf returns the names of an image: its own name; the same with another digest or tag, if that cannot ask for another image than the
// own name does; and the full name. A kubelet knows by the text before tag and digest whether the pod may use the image, so the full name
// makes it ask the registry. An image that is always pulled is not pinned to a digest.
func namesOf(image, running string, always bool) []string {
	names, named := []string{image}, parseName(image)
	if named == nil {
		return names
	}
	ran := parseName(strings.TrimPrefix(running, "docker-pullable://"))
	if ran != nil && digestOf(ran) == "" {
		ran = nil // it is the ID of an image that has no name in the runtime
	}
	switch pinned := digestOf(named); {
	case pinned != "" && tagOf(named) != "":
		names = append(names, Repository(image)+"@"+pinned)
	case pinned == "" && !always && ran != nil && ran.Name() == named.Name():
		names = append(names, Repository(image)+":"+tagOf(named)+"@"+digestOf(ran))
	}
	// Short names may have another registry (unqualified-search-registries of CRI-O).
	if ran == nil || reference.Domain(ran) == reference.Domain(named) {
		names = append(names, inFull(named, always)...)
	}
	return names
}

// inFull returns the name with everything that may be left out. An image that no digest can name also gets a name without one part:
// without the tag latest, or without the folder of Docker's own images.
func inFull(named reference.Named, always bool) []string {
	names := []string{named.String()}
	library, isDockers := strings.CutPrefix(named.Name(), dockers+"library/")
	switch {
	case !always || digestOf(named) != "":
	case tagOf(named) == "latest":
		names = append(names, named.Name())
	case isDockers:
		names = append(names, dockers+library+":"+tagOf(named))
	}
	return names
}

// dockers is the prefix of the full names of images in Docker's registry.
const dockers = "docker.io/"

// hasNames reports whether a container of the template can get another name of its image at all.
func hasNames(container *corev1.Container) bool {
	named := parseName(container.Image)
	if named == nil {
		return false
	}
	return anotherName(container, container.Image, named.Name()+"@sha256:"+strings.Repeat("0", 64)) != ""
}

// parseName returns the name of an image with the parts that it leaves out. It is nil if the text is not a name, such as an ID.
func parseName(image string) reference.Named {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil
	}
	return reference.TagNameOnly(named)
}

func tagOf(named reference.Named) string {
	if tagged, is := named.(reference.Tagged); is {
		return tagged.Tag()
	}
	return ""
}

func digestOf(named reference.Named) string {
	if digested, is := named.(reference.Digested); is {
		return digested.Digest().String()
	}
	return ""
}

// pullsAlways reports whether the image is always pulled. It is SetDefaults_Container in pkg/apis/core/v1/defaults.go, for a
// container that may have no defaults yet.
func pullsAlways(policy corev1.PullPolicy, image string) bool {
	return policy == corev1.PullAlways || policy == "" && IsLatest(image)
}
