package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock waits until no other launcher changes the cluster. The kernel releases the lock of a killed launcher.
func (l *launcher) lock(ctx context.Context) (unlock func(), err error) {
	directory, err := os.Open(string(l.dir))
	if err != nil {
		return nil, err
	}
	for waited := false; ; waited = true {
		err := unix.Flock(int(directory.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { directory.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			directory.Close()
			return nil, fmt.Errorf("lock %s: %w", l.dir, err)
		}
		if !waited {
			l.progress("waiting for another cluster command to finish")
		}
		select {
		case <-ctx.Done():
			directory.Close()
			return nil, errors.New("interrupted while another cluster command was at work")
		case <-time.After(50 * time.Millisecond):
		}
	}
}
