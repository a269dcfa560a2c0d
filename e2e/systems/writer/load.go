package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

const (
	// attemptPatience limits one attempt of a write.
	attemptPatience = 2 * time.Second
	// pause is how long a write waits before it is repeated.
	pause = 20 * time.Millisecond
	// pending is the number of writes that may wait for their acknowledgement at a time. Without a limit the repetitions of thousands of
	// writes would keep a system busy that has just come back.
	pending = 100
	listed  = 10
	// readPatience limits how long all may take to be read back.
	readPatience = 5 * time.Minute
)

// load writes numbers from 0 on, each when it is due; late ones are written at once.
type load struct {
	store
	rate    int
	started time.Time
	flowing chan struct{} // closed when as many writes as belong to a second are acknowledged
	stop    context.CancelFunc
	writers sync.WaitGroup

	mutex        sync.Mutex
	acknowledged map[int]bool
	last         time.Time // acknowledgement
	told         report
}

func start(ctx context.Context, in store, rate int) *load {
	ctx, stop := context.WithCancel(ctx)
	now := time.Now()
	l := &load{store: in, rate: rate, started: now, flowing: make(chan struct{}), stop: stop, acknowledged: map[int]bool{}, last: now}
	l.writers.Go(func() { l.run(ctx) })
	return l
}

func (l *load) run(ctx context.Context) {
	slots := make(chan struct{}, pending)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for number := 0; ; number++ {
		timer.Reset(time.Until(l.started.Add(time.Duration(number) * time.Second / time.Duration(l.rate))))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		l.writers.Go(func() {
			l.persist(ctx, number)
			<-slots
		})
	}
}

// persist repeats a write until it is acknowledged, or the load ends.
func (l *load) persist(ctx context.Context, number int) {
	for {
		err := l.attempt(number)
		if err == nil {
			l.acknowledge(number, time.Now())
			return
		}
		l.fail(number, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// attempt is not cancelled at the end of the load: a write that is under way is acknowledged or not.
func (l *load) attempt(number int) error {
	ctx, cancel := context.WithTimeout(context.Background(), attemptPatience)
	defer cancel()
	return l.write(ctx, number)
}

func (l *load) acknowledge(number int, at time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.pass(at)
	l.last = at
	l.acknowledged[number] = true
	if len(l.acknowledged) == l.rate {
		close(l.flowing)
	}
}

// pass notes that until this moment there was no acknowledgement since the last one.
func (l *load) pass(at time.Time) {
	if gap := at.Sub(l.last).Seconds(); gap > l.told.Gap {
		l.told.Gap, l.told.GapAfter = gap, l.last.Sub(l.started).Seconds()
	}
}

func (l *load) fail(number int, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.told.Repeated++
	if len(l.told.Failures) < listed {
		l.told.Failures = append(l.told.Failures, fmt.Sprintf("%.3fs: write %d: %v", time.Since(l.started).Seconds(), number, err))
	}
}

// tellStart prints a report when the load flows. It resets the gap before: the first write also opens the connection.
func (l *load) tellStart(to io.Writer) {
	<-l.flowing
	l.mutex.Lock()
	l.told.Gap = 0
	told := l.soFar()
	l.mutex.Unlock()
	_ = told.print(to)
}

func (l *load) soFar() report {
	told := l.told
	told.Acknowledged, told.Seconds = len(l.acknowledged), time.Since(l.started).Seconds()
	return told
}

// end stops writing, reads everything back and returns the report.
func (l *load) end(ctx context.Context) (report, error) {
	l.mutex.Lock()
	l.pass(time.Now())
	told := l.soFar()
	l.mutex.Unlock()
	l.stop()
	l.writers.Wait()
	told.Acknowledged = len(l.acknowledged)
	missing, err := l.missing(ctx)
	slices.Sort(missing)
	told.Lost, told.LostSome = len(missing), missing[:min(listed, len(missing))]
	return told, err
}

// missing returns the numbers that were acknowledged and are not read back.
func (l *load) missing(ctx context.Context) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	kept := map[int]bool{}
	if err := l.read(ctx, func(number int) { kept[number] = true }); err != nil {
		return nil, fmt.Errorf("reading back: %w", err)
	}
	var missing []int
	for number := range l.acknowledged {
		if !kept[number] {
			missing = append(missing, number)
		}
	}
	return missing, nil
}

// persistently repeats a request until it succeeds or ctx ends. A member that goes away may take a request with it.
func persistently(ctx context.Context, request func(context.Context) error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, attemptPatience)
		err := request(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
