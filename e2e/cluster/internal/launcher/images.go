package launcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/stayput/stayput/e2e/cluster/internal/plan"
	"github.com/stayput/stayput/e2e/cluster/registry"
)

// registry runs the registry. up starts it as the component of this name.
func (l *launcher) registry(ctx context.Context, _ []string) error {
	images, err := registry.TestImages(l.dir.Bin())
	if err != nil {
		return err
	}
	return registry.Serve(ctx, plan.RegistryAddress, images)
}

// push pushes an image to the registry.
func (l *launcher) push(_ context.Context, arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("push takes an image's name and tag, such as app:v10, and a static binary with its environment, or an image archive")
	}
	image, err := readImage(arguments[1], arguments[2:])
	if err != nil {
		return err
	}
	return registry.Push(plan.RegistryAddress+"/"+arguments[0], image)
}

// readImage makes an image of a binary, or reads it from an archive of docker save, which has its own environment.
func readImage(file string, environment []string) (v1.Image, error) {
	switch binary, err := isBinary(file); {
	case err != nil:
		return nil, err
	case binary:
		return registry.FromBinary(file, environment)
	case len(environment) > 0:
		return nil, fmt.Errorf("%s is no binary, so its environment cannot be set", file)
	}
	return tarball.ImageFromPath(file, nil)
}

func isBinary(file string) (bool, error) {
	content, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer content.Close()
	magic := make([]byte, 4)
	if _, err := content.Read(magic); err != nil {
		return false, err
	}
	return bytes.Equal(magic, []byte("\x7fELF")), nil
}
