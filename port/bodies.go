package port

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// largest is a little less than controller-runtime reads (maxRequestSize in pkg/webhook/admission/http.go).
	largest = 7<<20 - 1
	// small is nearly every body. There are places for them that no larger one takes: a small one is judged within a millisecond or two, while
	// decoding the largest takes a hundred.
	small = 128 << 10
	// smallOnes are how many small ones are judged at a time. Most of that time they wait for the API server.
	smallOnes = 128
	// largeRoom is how much of larger ones is judged at a time. Decoded, requests take up to some twenty times what they are, and a container has
	// 1 GiB; both rooms together are 24 MiB.
	largeRoom = 8 << 20
	// waitingRoom is how much has been read of bodies that are not judged yet.
	waitingRoom = 16 << 20
)

var (
	errNoRoom   = errors.New("other requests needed the room")
	errTooLarge = errors.New("the request is too large")
)

// bodies wait until they have been read and find a place to be judged. What has been read of them takes room, whatever has been announced. When
// there is none left, that one goes which has waited longest: it is read slower than the others come.
type bodies struct {
	small, large *semaphore.Weighted
	lock         sync.Mutex
	held         int64
	waiting      list.List // of *body, in the order they came
}

// body is one that waits.
type body struct {
	held int64
	drop context.CancelCauseFunc
	at   *list.Element // nil once it waits no more
}

func newBodies() *bodies {
	return &bodies{small: semaphore.NewWeighted(smallOnes), large: semaphore.NewWeighted(largeRoom)}
}

// await returns the body once it may be judged; leave gives up its place.
func (b *bodies) await(ctx context.Context, from io.Reader, interrupt func()) (whole []byte, leave func(), err error) {
	ctx, drop := context.WithCancelCause(ctx)
	defer drop(nil)
	waits := b.enter(drop)
	defer b.remove(waits)
	if whole, err = b.read(ctx, waits, from, interrupt); err != nil {
		return nil, nil, err
	}
	places, takes := b.small, int64(1)
	if len(whole) > small {
		places, takes = b.large, int64(len(whole))
	}
	if err := places.Acquire(ctx, takes); err != nil {
		return nil, nil, context.Cause(ctx)
	}
	return whole, func() { places.Release(takes) }, nil
}

// read ends, by the interrupt, when it takes too long or has to make room.
func (b *bodies) read(ctx context.Context, waits *body, from io.Reader, interrupt func()) ([]byte, error) {
	defer context.AfterFunc(ctx, interrupt)()
	var whole bytes.Buffer
	_, err := whole.ReadFrom(io.LimitReader(counted{from, waits, b}, largest+1))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil && whole.Len() > largest:
		return nil, errTooLarge
	}
	return whole.Bytes(), err
}

func (b *bodies) enter(drop context.CancelCauseFunc) *body {
	b.lock.Lock()
	defer b.lock.Unlock()
	waits := &body{drop: drop}
	waits.at = b.waiting.PushBack(waits)
	return waits
}

// grow counts what has been read. Others make room for it, or it for others.
func (b *bodies) grow(waits *body, n int) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if waits.at == nil {
		return
	}
	waits.held += int64(n)
	b.held += int64(n)
	for b.held > waitingRoom {
		longest := b.waiting.Front().Value.(*body)
		b.forget(longest)
		longest.drop(errNoRoom)
	}
}

func (b *bodies) remove(waits *body) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.forget(waits)
}

func (b *bodies) forget(waits *body) {
	if waits.at != nil {
		b.waiting.Remove(waits.at)
		b.held -= waits.held
		waits.at = nil
	}
}

// counted counts what is read of a body.
type counted struct {
	from   io.Reader
	waits  *body
	bodies *bodies
}

func (c counted) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	c.bodies.grow(c.waits, n)
	return n, err
}

// bounded keeps the requests to a hook within room and Patience. One that finds no room gets no answer that would be a verdict, so that the webhook's
// failurePolicy decides. A manager that is told to go answers those it has, as ever: net/http would cancel them first, and what cannot be read any more
// is allowed.
type bounded struct {
	http.Handler
	bodies *bodies
}

func (b bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), Patience)
	defer cancel()
	whole, leave, err := b.bodies.await(ctx, r.Body, func() {
		// Only connections in tests have no deadlines.
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	if err != nil {
		http.Error(w, "stayput: "+err.Error(), codeOf(err))
		return
	}
	defer leave()
	isJudged(ctx)
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(whole))
	b.Handler.ServeHTTP(w, r)
}

func codeOf(err error) int {
	switch {
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errNoRoom), errors.Is(err, context.DeadlineExceeded):
		return http.StatusTooManyRequests
	}
	return http.StatusBadRequest
}
