package main

import (
	"bytes"
	"os"
	"path/filepath"
	"time"
)

// filled is the number of bytes that fill writes.
const filled = 1 << 20

// fill does what init containers do: it waits, and then writes a file into a folder.
func fill(folder string, delay time.Duration) error {
	time.Sleep(delay)
	return os.WriteFile(filepath.Join(folder, "cache"), bytes.Repeat([]byte("x"), filled), 0o644)
}
