package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stayput/stayput/ci/mutation/mutant"
)

const (
	// dear is how long a test takes that is only tried where cheaper ones notice nothing.
	dear = 500 * time.Millisecond
	// slower is how many times as long as before tests may take with a change. One that makes them run for ever is noticed.
	slower = 8
	// started is how long a program may take to start, on a machine that has other things to do.
	started = 20 * time.Second
)

// parallel is how many tests run at a time.
var parallel = runtime.GOMAXPROCS(0)

// program is the compiled tests of a package.
type program struct{ folder, path, binary string }

// test is a test function of a program: how long it takes, and which changes it reaches.
type test struct {
	of      program
	name    string
	takes   time.Duration
	reaches map[int]bool
}

// compile compiles the tests of all packages that may use the rewritten ones.
func compile(root, binaries string) ([]program, error) {
	list := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}",
		"./inplace/...", "./webhook/...", "./controller/...", "./internal/...", "./cmd/...")
	list.Dir, list.Stderr = root, os.Stderr
	folders, err := list.Output()
	if err != nil {
		return nil, err
	}
	var programs []program
	for path := range strings.FieldsSeq(string(folders)) {
		folder, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		p := program{folder, path, filepath.Join(binaries, strings.ReplaceAll(folder, "/", "_"))}
		build := exec.Command("go", "test", "-c", "-o", p.binary, ".")
		build.Dir, build.Stderr = path, os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("compile the tests of %s: %w", folder, err)
		}
		programs = append(programs, p)
	}
	return programs, nil
}

// measure runs each test without any change. One that fails then is left out.
func measure(programs []program, reached string) ([]test, error) {
	var tests []test
	for _, p := range programs {
		list := exec.Command(p.binary, "-test.list", "^Test")
		list.Dir = p.path
		names, err := list.Output()
		if err != nil {
			return nil, err
		}
		for name := range strings.FieldsSeq(string(names)) {
			switch t, passes, err := p.measure(name, reached); {
			case err != nil:
				return nil, err
			case passes:
				tests = append(tests, t)
			default:
				fmt.Printf("%s of %s fails without any change, and is left out\n", name, p.folder)
			}
		}
	}
	return tests, nil
}

// measure runs that test, and finds out which changes it reaches.
func (p program) measure(name, reached string) (t test, passes bool, err error) {
	if err := os.WriteFile(reached, make([]byte, mutant.Most), 0o600); err != nil {
		return test{}, false, err
	}
	began := time.Now()
	passes = p.passes([]string{name}, 10*time.Minute, "REACHED="+reached)
	t = test{of: p, name: name, takes: time.Since(began), reaches: map[int]bool{}}
	marks, err := os.ReadFile(reached)
	for id, mark := range marks {
		if mark != 0 {
			t.reaches[id] = true
		}
	}
	return t, passes, err
}

// passes reports whether these tests of the program pass in time, with that variable in their environment.
func (p program) passes(names []string, within time.Duration, variable string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	tests := exec.CommandContext(ctx, p.binary, "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
	tests.Dir, tests.Env = p.path, append(os.Environ(), variable)
	err := tests.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		panic(err) // the program cannot be run
	}
	return err == nil
}

// group is tests that run together: the cheap or the dear ones of a program.
type group struct {
	of    program
	names []string
	takes time.Duration
}

func grouped(tests []test) []group {
	type key struct {
		of   program
		dear bool
	}
	groups := map[key]group{}
	for _, t := range tests {
		k := key{t.of, t.takes > dear}
		g := groups[k]
		groups[k] = group{t.of, append(g.names, t.name), g.takes + t.takes}
	}
	return slices.Collect(maps.Values(groups))
}

// own returns 1 if the tests are those of the change's own package, and 0 otherwise.
func (g group) own(c change) int {
	if g.of.folder == c.folder {
		return 1
	}
	return 0
}

func (g group) fails(c change) bool {
	return !g.of.passes(g.names, slower*g.takes+started, fmt.Sprint("MUTANT=", c.id))
}
