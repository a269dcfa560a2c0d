package registry

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

func TestStandInsForAgnhost(t *testing.T) {
	dir := t.TempDir()
	agnhost, busybox := filepath.Join(dir, "agnhost"), filepath.Join(dir, "busybox")
	must(0, os.WriteFile(agnhost, []byte("agnhost"), 0o755))(t)
	must(0, os.WriteFile(busybox, []byte("#!/bin/sh\nprintf 'busybox\\nsh\\ncat\\n'"), 0o755))(t)

	images := must(Agnhost(agnhost, busybox, []string{"agnhost:1", "agnhost:2"}))(t)

	first, second := images["agnhost:1"], images["agnhost:2"]
	if must(first.Digest())(t) == must(second.Digest())(t) {
		t.Error("both images have the same digest, so that no container would restart for the other")
	}
	config := must(first.ConfigFile())(t).Config
	if config.Entrypoint[0] != "/agnhost" || config.Cmd[0] != "pause" {
		t.Errorf("the image runs %v %v, want /agnhost pause", config.Entrypoint, config.Cmd)
	}
	files := contents(t, first)
	want := map[string]string{
		"agnhost": "agnhost", "bin/busybox": string(must(os.ReadFile(busybox))(t)), "bin/sh": "-> busybox", "bin/cat": "-> busybox",
		"tmp/": "dtrwxrwxrwx", "var/tmp/": "dtrwxrwxrwx", "localhost.crt": "a certificate\n", "usr/local/apache2/htdocs/index.html": "a page\n",
	}
	for name, content := range want {
		if files[name] != content {
			t.Errorf("%s is %q, want %q", name, files[name], content)
		}
	}
	if len(files) != len(want) {
		t.Errorf("the image has %v, want no more than %v", files, want)
	}
}

func TestStandInForHttpdServesItsPage(t *testing.T) {
	config := runs("127.0.0.1:5000/e2e-test-images/httpd:2.4.38-4")
	if config.Entrypoint != nil || config.Cmd[0] != "/bin/sh" || !strings.Contains(config.Cmd[2], filepath.Dir(webPage)) {
		t.Errorf("the image runs %q %q, want a shell that serves %s", config.Entrypoint, config.Cmd, webPage)
	}
}

func TestNoStandInsWithoutBusybox(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "busybox")
	if _, err := Agnhost(missing, missing, []string{"agnhost:1"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, want that busybox does not exist", err)
	}
}

// contents returns an image's files, the destinations of its links, and the modes of its folders.
func contents(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	found := map[string]string{}
	archive := tar.NewReader(mutate.Extract(image))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		must(header, err)(t)
		switch header.Typeflag {
		case tar.TypeSymlink:
			found[header.Name] = "-> " + header.Linkname
		case tar.TypeDir:
			found[header.Name+"/"] = header.FileInfo().Mode().String()
		default:
			found[header.Name] = string(must(io.ReadAll(archive))(t))
		}
	}
}
