// Command generator sends requests to a server until a signal stops it: generator RATE URL FILE sends RATE requests a second to URL, and
// writes to FILE how many were sent and how many of them were lost.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/stayput/stayput/e2e/load"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generator:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 3 {
		return errors.New("wants a rate, a URL and a file: generator 100 http://10.0.0.1 /tmp/requests")
	}
	rate, err := strconv.Atoi(arguments[0])
	if err != nil || rate < 1 {
		return fmt.Errorf("%s is not a number of requests a second", arguments[0])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l := load.Start(ctx, arguments[1], rate)
	for {
		if err := report(l.SoFar(), arguments[2]); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return report(l.End(), arguments[2])
		case <-time.After(time.Second / 10):
		}
	}
}

// report replaces the file atomically.
func report(count load.Traffic, file string) error {
	if err := os.WriteFile(file+".new", fmt.Appendln(nil, count.Sent, count.Lost), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
