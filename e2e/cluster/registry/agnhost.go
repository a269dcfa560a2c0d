package registry

import (
	"fmt"
	"os/exec"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Agnhost returns substitutes for the images of Kubernetes' own tests, which run agnhost and sometimes a shell: the static binary agnhost
// with the programs of the static busybox, as upstream's agnhost has those of Alpine. There is an image for each reference, and each has
// its own digest, so that a change from one to another is an update.
func Agnhost(agnhost, busybox string, references []string) (map[string]v1.Image, error) {
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("image: list the programs of %s: %w", busybox, err)
	}
	entries := []entry{{name: "agnhost", file: agnhost}, {name: "bin/busybox", file: busybox}, {name: "tmp"}, {name: "var/tmp"}}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			entries = append(entries, entry{name: "bin/" + applet, link: "busybox"})
		}
	}
	layer, err := layerOf(entries...)
	if err != nil {
		return nil, err
	}
	images := map[string]v1.Image{}
	for _, reference := range references {
		config := v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}, Env: []string{"PATH=/bin", "STANDS_IN_FOR=" + reference}}
		if images[reference], err = configured(layer, config); err != nil {
			return nil, err
		}
	}
	return images, nil
}
