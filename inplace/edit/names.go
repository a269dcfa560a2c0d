package edit

import (
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// A kubelet restarts a container when name or image of it is another text than the container was started with (HashContainer in
// pkg/kubelet/container/helpers.go). So one that is to restart as it is gets another name of its image. Nothing else in Kubernetes 1.34 to 1.37
// has a container of a live pod restart: restart rules cannot be added to one, and there is no subresource.

// IsNameOf reports whether a container that has the name runs what a template with that image asks for: the image written otherwise, or with the
// digest that it had when the container was restarted.
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

// anotherName is the first name of the image that the container of a pod does not have; empty if there is none. The image is what the template
// says, running the ID of the one that runs: names that it does not bear out are not used.
func anotherName(container *corev1.Container, image, running string) string {
	names := namesOf(image, running, pullsAlways(container.ImagePullPolicy, image))
	at := slices.IndexFunc(names, func(name string) bool { return name != container.Image })
	if at < 0 {
		return ""
	}
	return names[at]
}

// namesOf are the names of an image: its own; written out in full; and with its digest, as long as that asks for no other image than the own
// name does. What is to be pulled anew whenever a container starts is not pinned.
func namesOf(image, running string, always bool) []string {
	names, named := []string{image}, parseName(image)
	if named == nil {
		return names
	}
	ran := parseName(strings.TrimPrefix(running, "docker-pullable://"))
	if ran != nil && digestOf(ran) == "" {
		ran = nil // the ID of an image that the runtime knows by no name
	}
	if ran == nil || reference.Domain(ran) == reference.Domain(named) { // short names may have another registry (unqualified-search-registries of CRI-O)
		names = append(names, inFull(named, always)...)
	}
	pinned := digestOf(named)
	switch {
	case pinned != "" && tagOf(named) != "":
		return append(names, named.Name()+"@"+pinned)
	case pinned == "" && !always && ran != nil && ran.Name() == named.Name():
		return append(names, named.String()+"@"+digestOf(ran))
	}
	return names
}

// inFull are the names with everything that may be left out, and, of an image that no digest can name, one without some of it: the tag latest, or the folder
// of Docker's own images.
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

// dockers begins the names of images in Docker's registry.
const dockers = "docker.io/"

// hasNames reports whether a container of the template can be given another name at all.
func hasNames(container *corev1.Container) bool {
	named := parseName(container.Image)
	if named == nil {
		return false
	}
	return anotherName(container, container.Image, named.Name()+"@sha256:"+strings.Repeat("0", 64)) != ""
}

// parseName reads the name of an image with what it leaves out; nil if it is none, such as an ID.
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

// pullsAlways is SetDefaults_Container in pkg/apis/core/v1/defaults.go, of a container that may not have been through it.
func pullsAlways(policy corev1.PullPolicy, image string) bool {
	return policy == corev1.PullAlways || policy == "" && IsLatest(image)
}
