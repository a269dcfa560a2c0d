package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are the platforms of releases. The linked modules differ between them.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// legal matches the names of files with the terms of the code in their folder and below.
var legal = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice)([.-].*)?$`)

// module is a Go module that is linked. The standard library has no version.
type module struct{ path, version string }

// standard is Go's standard library.
var standard = module{path: "Go standard library"}

func (m module) String() string {
	return strings.TrimSpace(m.path + " " + m.version)
}

// link is where the module's licences can be read.
func (m module) link() string {
	if m == standard {
		return "https://go.dev/LICENSE"
	}
	return fmt.Sprintf("https://pkg.go.dev/%s@%s?tab=licenses", m.path, m.version)
}

// file is a legal file of a module. Its name is relative to the module's folder.
type file struct {
	of         module
	name, path string
}

// pkg is a package, as "go list -json" prints it.
type pkg struct {
	ImportPath, Dir string
	Module          *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// linkedFiles returns the legal files of all packages on every platform, sorted and without duplicates.
func linkedFiles(packages []string) ([]file, error) {
	found := map[file]bool{}
	for _, platform := range platforms {
		linked, err := linkedPackages(platform, packages)
		if err != nil {
			return nil, err
		}
		for _, p := range linked {
			if err := p.addFiles(found); err != nil {
				return nil, err
			}
		}
	}
	first, err := standardLibrary()
	if err != nil {
		return nil, err
	}
	files := slices.SortedFunc(maps.Keys(found), func(a, b file) int {
		return strings.Compare(a.of.String()+" "+a.name, b.of.String()+" "+b.name)
	})
	return append([]file{first}, files...), nil
}

// linkedPackages returns the packages and all that they import on a platform.
func linkedPackages(platform string, packages []string) ([]pkg, error) {
	command := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Module"}, packages...)...)
	system, machine, _ := strings.Cut(platform, "/")
	command.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0", "GOARCH="+machine)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var linked []pkg
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p pkg
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return linked, nil
		case err != nil:
			return nil, fmt.Errorf("go list: %w", err)
		}
		linked = append(linked, p)
	}
}

// addFiles adds the legal files in the package's folder and in its parents, up to the module's folder: copied code has its own. One of the
// files must be a licence.
func (p pkg) addFiles(found map[file]bool) error {
	if p.Module == nil || p.Module.Main {
		return nil
	}
	of := module{p.Module.Path, p.Module.Version}
	licensed := false
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if path := filepath.Join(dir, entry.Name()); isLegal(entry) {
				found[file{of, strings.TrimPrefix(path, p.Module.Dir+"/"), path}] = true
				licensed = licensed || !isNotice(path)
			}
		}
		if dir == p.Module.Dir && !licensed {
			return fmt.Errorf("%s of %s: no licence beside or above it", p.ImportPath, of)
		}
		if dir == p.Module.Dir {
			return nil
		}
	}
}

// isLegal reports whether the entry is a legal file. LICENSE.docs is none: in projects of Docker and OCI it is the licence of pages such as
// README.md, which are not linked.
func isLegal(entry os.DirEntry) bool {
	extension := filepath.Ext(entry.Name())
	return !entry.IsDir() && legal.MatchString(entry.Name()) && extension != ".go" && extension != ".docs"
}

// isNotice reports whether the file has notices, and not a licence.
func isNotice(path string) bool {
	return strings.HasPrefix(strings.ToUpper(filepath.Base(path)), "NOTICE")
}

// standardLibrary returns the licence of Go itself.
func standardLibrary() (file, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	return file{standard, "LICENSE", filepath.Join(strings.TrimSpace(string(root)), "LICENSE")}, err
}
