//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// processors is what the time of the machine's processors went to since it was started, in ticks.
type processors struct{ all, idle, stolen float64 }

// used reads the first line of /proc/stat (proc_stat(5)): user nice system idle iowait irq softirq steal. It is zero where there is none.
func used() processors {
	const idle, iowait, steal, fields = 4, 5, 8, 9
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
	return processors{all: all, idle: ticks[idle] + ticks[iowait], stolen: ticks[steal]}
}

// since tells how busy the machine was: whether it was the machine that was too slow is for the reader to judge.
func (p processors) since(before processors) string {
	all := max(1, p.all-before.all)
	return fmt.Sprintf("the processors were idle for %.0f%% of the time, and for %.0f%% of it the hypervisor gave them to others",
		100*(p.idle-before.idle)/all, 100*(p.stolen-before.stolen)/all)
}
