// Program mutation changes the conditions of packages, one at a time, and lists the changes that no test notices: == becomes !=, < becomes
// >= and <=, && becomes ||. All changes are compiled into the tests at once, and each run switches on one of them. So a change costs no
// compiler, and tests of other packages notice it, too.
//
//	mutation FOLDER PACKAGE...
//
// FOLDER is a copy of the module, because its files are rewritten. A package is named by its folder, as inplace/readiness.
package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stayput/stayput/ci/mutation/mutant"
)

// imported is the package mutant in the copy.
const imported = "github.com/stayput/stayput/mutant"

//go:embed mutant/mutant.go
var switches []byte

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: mutation FOLDER PACKAGE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, packages []string) error {
	changes, err := rewriteAll(root, packages)
	if err != nil {
		return err
	}
	binaries := filepath.Join(root, "mutant")
	if err := os.MkdirAll(binaries, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(binaries, "mutant.go"), switches, 0o600); err != nil {
		return err
	}
	programs, err := compile(root, binaries)
	if err != nil {
		return err
	}
	tests, err := measure(programs, filepath.Join(binaries, "reached"))
	if err != nil {
		return err
	}
	fmt.Printf("%d changes, %d tests\n", len(changes), len(tests))
	tryAll(changes, tests)
	return nil
}

// rewriteAll rewrites the packages, and returns all changes of their conditions.
func rewriteAll(root string, packages []string) ([]change, error) {
	var changes []change
	for _, folder := range packages {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			text, more, err := rewritten(folder, filepath.Base(file), string(source), len(changes)+1)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return nil, err
			}
			changes = append(changes, more...)
		}
	}
	if len(changes) == 0 || len(changes) >= mutant.Most {
		return nil, fmt.Errorf("%s have %d conditions to change, and there may be %d", packages, len(changes), mutant.Most-1)
	}
	return changes, nil
}

// tryAll switches on one change after the other, and prints those that no test notices.
func tryAll(changes []change, tests []test) {
	var (
		workers             sync.WaitGroup
		lock                sync.Mutex
		noticed, unreached  int
		next                = make(chan change)
		unnoticedBy, counts = map[string]int{}, map[string]int{}
	)
	for range parallel {
		workers.Go(func() {
			for c := range next {
				reaching := slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return !t.reaches[c.id] })
				fails := failing(reaching, c)
				lock.Lock()
				counts[c.folder]++
				switch {
				case fails:
					noticed++
				case len(reaching) == 0:
					unreached++
					fmt.Printf("%s/%s:%d is not reached: %s\n", c.folder, c.file, c.line, c.text)
				default:
					unnoticedBy[c.folder]++
					fmt.Printf("%s/%s:%d %s: %s\n", c.folder, c.file, c.line, c.does, c.text)
				}
				lock.Unlock()
			}
		})
	}
	for _, c := range changes {
		next <- c
	}
	close(next)
	workers.Wait()
	for _, folder := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%s: %d of %d changes are not noticed\n", folder, unnoticedBy[folder], counts[folder])
	}
	fmt.Printf("%d of %d changes are noticed, %d are not reached\n", noticed, len(changes), unreached)
}

// failing reports whether one of the tests fails with the change: first those of its own package, then cheap ones.
func failing(tests []test, c change) bool {
	groups := grouped(tests)
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.own(c), a.own(c)), cmp.Compare(a.takes, b.takes))
	})
	return slices.ContainsFunc(groups, func(g group) bool { return g.fails(c) })
}
