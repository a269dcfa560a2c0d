// Package launcher has the commands of the cluster binary: up, down and others.
package launcher

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stayput/stayput/e2e/cluster/internal/layout"
	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

// usage lists the commands. It leaves out the command registry, which up starts.
const usage = `cluster up [--nodes 3] [--simulated-nodes 0] [--kubernetes-version v1.36.3]
cluster down               take it down and leave nothing behind
cluster status             what runs; fails if something does not
cluster logs               the errors in the components' logs
cluster stop NAME...       end components in good order
cluster kill NAME...       end components at once, as a crash would
cluster start NAME...      start components again
cluster push NAME:TAG FILE push a static binary, with environment NAME=VALUE..., or an image archive to the registry
`

// launcher runs one command.
type launcher struct {
	dir   layout.Dir
	out   io.Writer
	began time.Time
	mutex sync.Mutex
	// socket is locked while a component replaces a socket that others use, too.
	socket sync.Mutex
}

// commands get the arguments after their name.
var commands = map[string]func(*launcher, context.Context, []string) error{
	"up":       (*launcher).upCommand,
	"down":     (*launcher).down,
	"status":   (*launcher).status,
	"logs":     (*launcher).logs,
	"stop":     (*launcher).stop,
	"kill":     (*launcher).kill,
	"start":    (*launcher).start,
	"push":     (*launcher).push,
	"registry": (*launcher).registry,
}

// Main runs the command line arguments and returns the exit status: 2 for wrong arguments, 1 for any other failure.
func Main(arguments []string) int {
	if len(arguments) == 0 || commands[arguments[0]] == nil {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := layout.Own()
	if err == nil {
		l := &launcher{dir: dir, out: os.Stdout, began: time.Now()}
		err = commands[arguments[0]](l, ctx, arguments[1:])
	}
	if errors.Is(err, flag.ErrHelp) {
		return 2
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return 0
}

// upCommand parses the arguments of up.
func (l *launcher) upCommand(ctx context.Context, arguments []string) error {
	var wanted state
	flags := flag.NewFlagSet("cluster up", flag.ContinueOnError)
	flags.IntVar(&wanted.Nodes, "nodes", 0, "real nodes (default 3, or as many as there are)")
	flags.IntVar(&wanted.SimulatedNodes, "simulated-nodes", 0, "simulated nodes (default none, or as many as there are)")
	flags.StringVar(&wanted.Version, "kubernetes-version", "", "Kubernetes version (default the running one, or the built one)")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 || wanted.Nodes < 0 || wanted.Nodes > plan.MaxNodes || wanted.SimulatedNodes < 0 {
		return fmt.Errorf("up takes no arguments but flags, --nodes at most %d, and no negative numbers", plan.MaxNodes)
	}
	return l.up(ctx, wanted)
}

// progress prints the present step.
func (l *launcher) progress(what string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fmt.Fprintf(l.out, "%6.1fs  %s\n", time.Since(l.began).Seconds(), what)
}

// known returns an error unless there is a component of each name.
func known[T any](components map[string]T, names []string) error {
	if len(names) == 0 {
		return errors.New("which component? See cluster status")
	}
	for _, name := range names {
		if _, ok := components[name]; !ok {
			return fmt.Errorf("there is no component %s, only %s", name, strings.Join(slices.Sorted(maps.Keys(components)), ", "))
		}
	}
	return nil
}
