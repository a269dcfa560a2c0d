package registry

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestImagesDifferAndAreReproducible(t *testing.T) {
	binaries := testBinaries(t)
	first, second := digests(t, binaries), digests(t, binaries)
	seen := map[v1.Hash]string{}
	for tag, digest := range first {
		if second[tag] != digest {
			t.Errorf("%s has digest %s and then %s", tag, digest, second[tag])
		}
		if other, taken := seen[digest]; taken {
			t.Errorf("%s and %s have the same digest", tag, other)
		}
		seen[digest] = tag
	}
	if want := versions + 2; len(first) != want {
		t.Errorf("%d images, want %d", len(first), want)
	}
}

func TestServedImagesCanBePulled(t *testing.T) {
	images := must(TestImages(testBinaries(t)))(t)
	address := start(t, images)
	for tag, image := range images {
		if got, want := pulledDigest(t, address+"/"+tag), must(image.Digest())(t); got != want {
			t.Errorf("%s: pulled %s, want %s", tag, got, want)
		}
	}
}

func TestPushedImageCanBePulled(t *testing.T) {
	address := start(t, nil)
	image := must(FromBinary(filepath.Join(testBinaries(t), "images", "app"), []string{"VERSION=v10"}))(t)
	if err := Push(address+"/stayput:dev", image); err != nil {
		t.Fatal(err)
	}
	if got, want := pulledDigest(t, address+"/stayput:dev"), must(image.Digest())(t); got != want {
		t.Errorf("pulled %s, want %s", got, want)
	}
}

func TestImageRunsAsNonrootOnLinux(t *testing.T) {
	image := must(FromBinary(filepath.Join(testBinaries(t), "images", "app"), []string{"VERSION=v1"}))(t)
	file := must(image.ConfigFile())(t)
	if file.OS != "linux" || file.Architecture != "amd64" {
		t.Errorf("platform %s/%s, want linux/amd64", file.OS, file.Architecture)
	}
	if file.Config.User != "65532:65532" || file.Config.Entrypoint[0] != "/app" || file.Config.Env[0] != "VERSION=v1" {
		t.Errorf("user %s, entrypoint %v, environment %v", file.Config.User, file.Config.Entrypoint, file.Config.Env)
	}
}

func TestMissingBinaryIsNamed(t *testing.T) {
	if _, err := TestImages(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want that images/app does not exist", err)
	}
}

// start serves images on a free port until the test ends.
func start(t *testing.T, images map[string]v1.Image) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	handler := registry.New()
	if err := fill(handler, address, images); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- serve(t.Context(), listener, handler) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return address
}

func testBinaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, binary := range []string{"app", "pause"} {
		if err := os.WriteFile(filepath.Join(dir, "images", binary), []byte(binary), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func digests(t *testing.T, binaries string) map[string]v1.Hash {
	t.Helper()
	result := map[string]v1.Hash{}
	for tag, image := range must(TestImages(binaries))(t) {
		result[tag] = must(image.Digest())(t)
	}
	return result
}

// pulledDigest reads the whole image, including layers, as a node does.
func pulledDigest(t *testing.T, reference string) v1.Hash {
	t.Helper()
	image := must(remote.Image(must(name.ParseReference(reference, name.Insecure))(t)))(t)
	for _, layer := range must(image.Layers())(t) {
		content := must(layer.Uncompressed())(t)
		must(io.Copy(io.Discard, content))(t)
	}
	return must(image.Digest())(t)
}

// must returns a result that the test cannot continue without.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
