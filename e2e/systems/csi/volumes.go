package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// volumes is the folder that has a folder for each volume. All that is known about a volume is in its folder, so the services may restart:
//
//	data      what pods write
//	capacity  in bytes, as it was asked for
//	node      the node that it is attached to; without this file it is attached to none
type volumes string

func (v volumes) path(volume string, elements ...string) string {
	return filepath.Join(append([]string{string(v), volume}, elements...)...)
}

// check returns the error of a request for a volume that has no ID or does not exist.
func (v volumes) check(volume string) error {
	if volume == "" {
		return status.Error(codes.InvalidArgument, "no volume ID")
	}
	if !isName(volume) {
		return status.Errorf(codes.NotFound, "there is no volume %q", volume)
	}
	if _, err := os.Stat(v.path(volume, "data")); err != nil {
		return status.Errorf(codes.NotFound, "there is no volume %q", volume)
	}
	return nil
}

// isName reports whether a volume of this name is a folder in the folder of all volumes.
func isName(volume string) bool {
	return filepath.IsLocal(volume) && !strings.ContainsAny(volume, "/\x00") && volume != "."
}

// create creates the volume, unless there is one of this name and capacity. Pods of every user may write to it.
func (v volumes) create(volume string, capacity int64) error {
	switch known, err := os.ReadFile(v.path(volume, "capacity")); {
	case err == nil && string(known) == strconv.FormatInt(capacity, 10):
		return nil
	case err == nil:
		return status.Errorf(codes.AlreadyExists, "volume %q has a capacity of %s bytes, not %d", volume, known, capacity)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(v.path(volume, "data"), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(v.path(volume, "data"), 0o777); err != nil {
		return err
	}
	return os.WriteFile(v.path(volume, "capacity"), []byte(strconv.FormatInt(capacity, 10)), 0o644)
}

func (v volumes) remove(volume string) error { return os.RemoveAll(v.path(volume)) }

// attachedTo returns the node that the volume is attached to, or "".
func (v volumes) attachedTo(volume string) (string, error) {
	node, err := os.ReadFile(v.path(volume, "node"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(node), err
}

// attach attaches the volume to the node. It fails if the volume is attached: a link is made as a whole or not at all, so only one of two
// requests succeeds.
func (v volumes) attach(volume, node string) error {
	written, err := os.CreateTemp(v.path(volume), "attaching-")
	if err != nil {
		return err
	}
	_, err = written.WriteString(node)
	if err = errors.Join(err, written.Close()); err == nil {
		err = os.Link(written.Name(), v.path(volume, "node"))
	}
	return errors.Join(err, os.Remove(written.Name()))
}

func (v volumes) detach(volume string) error {
	err := os.Remove(v.path(volume, "node"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
