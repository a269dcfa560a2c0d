package registry

import (
	"fmt"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// versions is the number of versions of the test application: app:v1 and so on.
const versions = 9

// created is the creation time of every image. It is fixed so that the same binary always has the same digest.
var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestImages returns app:v1 to app:v9 and app:crash, which share a layer and differ in their environment, and pause:latest, made of the
// binaries images/app and images/pause in binDir.
func TestImages(binDir string) (map[string]v1.Image, error) {
	app, err := binaryLayer(filepath.Join(binDir, "images", "app"))
	if err != nil {
		return nil, err
	}
	environments := map[string][]string{"crash": {"VERSION=crash", "CRASH=true"}}
	for i := range versions {
		version := fmt.Sprintf("v%d", i+1)
		environments[version] = []string{"VERSION=" + version}
	}
	images := map[string]v1.Image{}
	for tag, env := range environments {
		if images["app:"+tag], err = image(app, env); err != nil {
			return nil, err
		}
	}
	images["pause:latest"], err = FromBinary(filepath.Join(binDir, "images", "pause"), nil)
	return images, err
}

// FromBinary returns an image for linux/amd64 with the static binary at path as its entrypoint /app. It runs as user 65532 with the
// environment env ("NAME=value"). Equal arguments and binaries have equal digests.
func FromBinary(path string, env []string) (v1.Image, error) {
	layer, err := binaryLayer(path)
	if err != nil {
		return nil, err
	}
	return image(layer, env)
}

func image(layer v1.Layer, env []string) (v1.Image, error) {
	return configured(layer, v1.Config{Entrypoint: []string{"/app"}, User: "65532:65532", Env: env})
}

func configured(layer v1.Layer, config v1.Config) (v1.Image, error) {
	withLayer, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := withLayer.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	file.Created = v1.Time{Time: created}
	file.Config = config
	return mutate.ConfigFile(withLayer, file)
}

// binaryLayer returns a layer with one file, /app.
func binaryLayer(path string) (v1.Layer, error) {
	return layerOf(entry{name: "app", file: path})
}
