package launcher

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// failure is how components write that something failed: klog, logrus and slog, zap, CoreDNS, Go's runtime.
var failure = regexp.MustCompile(`^[EF]\d{4} |level=(?i:error|fatal|panic)|"level":"(error|fatal|panic)"|^\[(ERROR|FATAL)\]|^panic: |^fatal error: `)

// harmless is written by kwok whenever somebody else was faster to change an object, before it tries again.
const harmless = "the object has been modified"

// logs prints the lines of all logs that say that something failed.
func (l *launcher) logs(context.Context, []string) error {
	files, err := filepath.Glob(l.dir.Log("*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := l.printFailures(file); err != nil {
			return err
		}
	}
	return nil
}

func (l *launcher) printFailures(file string) error {
	log, err := os.Open(file)
	if err != nil {
		return err
	}
	defer log.Close()
	name := strings.TrimSuffix(filepath.Base(file), ".log")
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if isFailure(name, lines.Text()) {
			fmt.Fprintf(l.out, "%s: %s\n", name, lines.Text())
		}
	}
	return lines.Err()
}

func isFailure(component, line string) bool {
	return failure.MatchString(line) && !(component == "kwok" && strings.Contains(line, harmless))
}
