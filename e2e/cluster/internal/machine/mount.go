package machine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

type mount struct{ path, fileSystem string }

// mounts parses proc_pid_mountinfo(5), in the order of mounting.
func mounts() ([]mount, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []mount
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		before, after, _ := strings.Cut(line, " - ")
		fields, fileSystem := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(fileSystem) < 1 {
			return nil, fmt.Errorf("/proc/self/mountinfo: %q is no mount", line)
		}
		found = append(found, mount{path: unescape.Replace(fields[4]), fileSystem: fileSystem[0]})
	}
	return found, nil
}

// unescape undoes the kernel's escapes of separators in paths.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Unmount unmounts everything below directory, the last mounted first, even if files are open there.
func Unmount(directory string) error {
	mounts, err := mounts()
	if err != nil {
		return err
	}
	var failures []error
	for _, mount := range slices.Backward(mounts) {
		if strings.HasPrefix(mount.path, directory+"/") {
			failures = append(failures, unmount(mount.path))
		}
	}
	return errors.Join(failures...)
}

func unmount(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH)
	if err == nil || errors.Is(err, unix.EINVAL) { // no longer mounted: the unmount of another mount has removed it
		return nil
	}
	return fmt.Errorf("unmount %s: %w", path, err)
}
