//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// A scenario begins when this share of the processors' time has been idle for restFor. On a machine that is always busier, webhooks time
// out, and native writes bypass them. Stayput works that way there, but the scenarios do not test it.
const (
	restShare = 0.2
	restFor   = 2 * time.Second
)

var (
	entrance sync.Mutex
	inside   atomic.Int32
)

// enter delays a scenario until the processors have been idle enough, or no other scenario runs. One scenario waits at a time.
func enter(t *testing.T) {
	t.Helper()
	entrance.Lock()
	defer entrance.Unlock()
	for inside.Load() > 0 && t.Context().Err() == nil {
		before := used()
		time.Sleep(restFor)
		if used().restedSince(before) {
			break
		}
	}
	inside.Add(1)
	t.Cleanup(func() { inside.Add(-1) })
}

// processors holds the ticks of the machine's processors since it was started.
type processors struct{ all, idle, stolen float64 }

// used reads the first line of /proc/stat (proc_stat(5)): user nice system idle iowait irq softirq steal. Work of lower priority counts as
// idle: it gives way to scenarios. It returns zero values without that file.
func used() processors {
	const nice, idle, iowait, steal, fields = 2, 4, 5, 8, 9
	content, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(content), "\n")
	columns := strings.Fields(line)
	if len(columns) < fields {
		return processors{}
	}
	ticks := make([]float64, fields)
	var all float64
	for i := 1; i < fields; i++ {
		ticks[i], _ = strconv.ParseFloat(columns[i], 64)
		all += ticks[i]
	}
	return processors{all: all, idle: ticks[nice] + ticks[idle] + ticks[iowait], stolen: ticks[steal]}
}

// restedSince reports whether the processors were idle enough. It is also true where that is not known.
func (p processors) restedSince(before processors) bool {
	return p.idle-before.idle >= restShare*(p.all-before.all)
}

// since says how busy the machine was, for a reader who has to decide whether the machine was too slow.
func (p processors) since(before processors) string {
	all := max(1, p.all-before.all)
	return fmt.Sprintf("the processors were idle for %.0f%% of the time, and for %.0f%% of it the hypervisor gave them to others",
		100*(p.idle-before.idle)/all, 100*(p.stolen-before.stolen)/all)
}

// overloadLasts ends every load, whatever becomes of the test.
const overloadLasts = time.Hour

// burden starts processes that never rest. They end with the test, or after overloadLasts.
func burden(t *testing.T, threads int) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), overloadLasts)
	var ended errgroup.Group
	for range threads {
		busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			stop()
			t.Fatal(err)
		}
		ended.Go(busy.Wait)
	}
	t.Cleanup(func() {
		stop()
		_ = ended.Wait() // each says that it was killed
	})
}

// numberOf returns the number in an environment variable.
func numberOf(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is no number: %v", variable, text, err)
	}
	return value
}
