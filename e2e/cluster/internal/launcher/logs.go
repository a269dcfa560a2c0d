package launcher

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// failure matches lines about failures: of klog, logrus and slog, zap, CoreDNS, and Go's runtime.
var failure = regexp.MustCompile(`^[EF]\d{4} |level=(?i:error|fatal|panic)|"level":"(?i:error|fatal|panic)"|^\[(ERROR|FATAL)\]|^panic: |^fatal error: `)

// noise matches lines that contain text in the log of a component.
type noise struct{ component, text string }

// harmless are lines that every cluster logs, by component or by a prefix of its name: while it starts and other components are not there
// yet, for lack of a capability that it can do without, when a client hangs up or an object is already gone, or before it retries.
var harmless = []noise{
	{"kwok", "the object has been modified"},
	{"kube-", "The manifest file is empty, ignoring"},
	{"kube-apiserver", `namespaces \"kube-system\" not found`},
	{"kube-proxy", "Failed to list existing nftables objects"},
	{"kubelet-", "Failed to set rlimit on max file handles"},
	{"kubelet-", "Failed to ensure process in container with oom score"},
	{"kubelet-", "Skipping pod synchronization"},
	{"kubelet-", "checkpoint is not found"},
	{"kubelet-", "Error getting the current node from lister"}, // until it is registered
	{"kubelet-", "node is not registered yet"},
	{"kubelet-", `error getting node \"`},
	{"kubelet-", "use of closed network connection"},
	{"kubelet-", "an error occurred when try to find container"},
	{"containerd-", "an error occurred when try to find container"},
	{"kube-apiserver", "http2: stream closed"},
	{"kube-controller-manager", "is not as new as written version"},
}

// logs prints the lines of all logs that are about failures.
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
	return failure.MatchString(line) && !slices.ContainsFunc(harmless, func(each noise) bool {
		return strings.HasPrefix(component, each.component) && strings.Contains(line, each.text)
	})
}
