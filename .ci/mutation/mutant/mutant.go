// Package mutant switches on one changed condition. The program mutation copies it into the module whose conditions it changes.
package mutant

import (
	"os"
	"strconv"
	"syscall"
)

// Most is how many changes there may be.
const Most = 1 << 16

// on is the change that is switched on: the number in MUTANT, or none.
var on, _ = strconv.Atoi(os.Getenv("MUTANT"))

// reached has a byte for each change. It is the file REACHED, which outlives a test that ends without notice.
var reached = mapped(os.Getenv("REACHED"))

func mapped(name string) []byte {
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	bytes, err := syscall.Mmap(int(file.Fd()), 0, Most, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return bytes
}

// On reports whether the change is switched on, and notes that it was reached.
func On(id int) bool {
	if reached != nil {
		reached[id] = 1
	}
	return on == id
}

// And is a && b, or a || b with that change.
func And(id int, a bool, b func() bool) bool {
	if On(id) {
		return a || b()
	}
	return a && b()
}

// Or is a || b, or a && b with that change.
func Or(id int, a bool, b func() bool) bool {
	if On(id) {
		return a && b()
	}
	return a || b()
}
