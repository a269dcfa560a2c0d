package registry

import (
	"fmt"
	"os/exec"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The files that tests of StatefulSets take away and bring back, to make the readiness probe of a pod fail and succeed: the first one in
// upstream's agnhost, the second one in its httpd.
const (
	certificate = "localhost.crt"
	webPage     = "usr/local/apache2/htdocs/index.html"
)

// serveWebPages is what httpd does instead of agnhost. The first process of a container gets no signal that it does not ask for.
const serveWebPages = "trap 'exit 0' TERM; httpd -f -p 80 -h /usr/local/apache2/htdocs & wait"

// Agnhost returns substitutes for the images of Kubernetes' own tests, which run agnhost and sometimes a shell: the static binary agnhost
// with the programs of the static busybox, as upstream's agnhost has those of Alpine. There is an image for each reference, and each has
// its own digest, so that a change from one to another is an update.
func Agnhost(agnhost, busybox string, references []string) (map[string]v1.Image, error) {
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("image: list the programs of %s: %w", busybox, err)
	}
	entries := []entry{{name: "agnhost", file: agnhost}, {name: "bin/busybox", file: busybox}, {name: "tmp"}, {name: "var/tmp"},
		{name: certificate, text: "a certificate\n"}, {name: webPage, text: "a page\n"}}
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
		if images[reference], err = configured(layer, runs(reference)); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// runs returns the program of the image that stands in for reference.
func runs(reference string) v1.Config {
	config := v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}, Env: []string{"PATH=/bin", "STANDS_IN_FOR=" + reference}}
	if strings.Contains(reference, "/httpd:") {
		config.Entrypoint, config.Cmd = nil, []string{"/bin/sh", "-c", serveWebPages}
	}
	return config
}
