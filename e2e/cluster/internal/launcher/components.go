package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stayput/stayput/e2e/cluster/internal/component"
	"github.com/stayput/stayput/e2e/cluster/internal/process"
)

// grace is the time for a regular end of a component that is stopped.
const grace = 10 * time.Second

// adopt records the components that run without a record: their launcher was killed between the start and the record.
func (l *launcher) adopt(table []component.Component) error {
	pids, err := process.All()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		index := slices.IndexFunc(table, func(c component.Component) bool { return slices.Equal(c.Argv, process.Arguments(pid)) })
		if index < 0 {
			continue
		}
		if found, err := process.Of(pid); err == nil && found.Alive() { // otherwise it has ended meanwhile
			if err := writeJSON(l.processFile(table[index].Name), found); err != nil {
				return err
			}
		}
	}
	return nil
}

// launch starts the component unless it runs, and returns when it is ready.
func (l *launcher) launch(ctx context.Context, c component.Component) error {
	recorded, err := l.process(c.Name)
	if err != nil {
		return err
	}
	if c.Socket != "" {
		l.socket.Lock()
		defer l.socket.Unlock()
	}
	if !recorded.Alive() {
		if err := recorded.WaitGone(ctx); err != nil {
			return err
		}
		if err := c.Prepare(); err != nil {
			return err
		}
		if recorded, err = process.Start(c.Argv, l.dir.Log(c.Name)); err != nil {
			return err
		}
		if err := writeJSON(l.processFile(c.Name), recorded); err != nil {
			return err
		}
	}
	return l.awaitReady(ctx, c, recorded)
}

func (l *launcher) awaitReady(ctx context.Context, c component.Component, running process.Process) error {
	for {
		err := started(ctx, c, running)
		if err == nil && running.Alive() {
			return nil
		}
		if !running.Alive() {
			return l.exited(c.Name)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: see %s (%w)", context.Cause(ctx), l.dir.Log(c.Name), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// started returns nil once the component works and no longer replaces the socket of another component.
func started(ctx context.Context, c component.Component, running process.Process) error {
	if err := c.Ready(ctx); err != nil || c.Socket == "" {
		return err
	}
	return running.ListensOn(c.Socket)
}

// awaitExit returns the end of the log of the first of these components to exit, or nil when ctx has ended.
func (l *launcher) awaitExit(ctx context.Context, names []string) error {
	for {
		for _, name := range names {
			if recorded, err := l.process(name); err == nil && !recorded.Alive() {
				return fmt.Errorf("%s: %w", name, l.exited(name))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *launcher) exited(name string) error {
	return fmt.Errorf("it exited; the end of %s is:\n%s", l.dir.Log(name), l.lastLines(name))
}

func (l *launcher) lastLines(name string) string {
	const count = 5
	content, err := os.ReadFile(l.dir.Log(name))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// start starts the components of these names again.
func (l *launcher) start(ctx context.Context, names []string) error {
	return l.withComponents(ctx, names, func(ctx context.Context, c component.Component) error {
		return l.launch(ctx, c)
	})
}

// stop ends the components of these names with SIGTERM, and kills those that do not end.
func (l *launcher) stop(ctx context.Context, names []string) error {
	return l.withComponents(ctx, names, func(ctx context.Context, c component.Component) error {
		ended, err := l.signal(ctx, c.Name, syscall.SIGTERM, grace)
		if err == nil && !ended {
			_, err = l.signal(ctx, c.Name, syscall.SIGKILL, patience)
		}
		return err
	})
}

// kill ends the components of these names as a crash would.
func (l *launcher) kill(ctx context.Context, names []string) error {
	return l.withComponents(ctx, names, func(ctx context.Context, c component.Component) error {
		_, err := l.signal(ctx, c.Name, syscall.SIGKILL, patience)
		return err
	})
}

// signal sends signal to the component and reports whether it has ended before the timeout.
func (l *launcher) signal(ctx context.Context, name string, signal syscall.Signal, timeout time.Duration) (bool, error) {
	recorded, err := l.process(name)
	if err != nil {
		return false, err
	}
	if err := recorded.Signal(signal); err != nil {
		return false, err
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := recorded.WaitGone(waiting); err != nil {
		return false, ctx.Err()
	}
	return true, nil
}

// withComponents calls do for all components of these names at once.
func (l *launcher) withComponents(ctx context.Context, names []string, do func(context.Context, component.Component) error) error {
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	table, err := l.table()
	if err != nil {
		return err
	}
	byName := map[string]component.Component{}
	for _, each := range table {
		byName[each.Name] = each
	}
	if err := known(byName, names); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		group.Go(func() error {
			if err := do(ctx, byName[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// table returns the components of the cluster that is up.
func (l *launcher) table() ([]component.Component, error) {
	cluster, exists, err := l.recorded()
	if err == nil && !exists {
		err = errors.New("no cluster is up: run make cluster")
	}
	return component.Table(l.dir, cluster.Nodes, cluster.SimulatedNodes), err
}
