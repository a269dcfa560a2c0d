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

	"github.com/stayput/stayput/inplace/apps"
)

const (
	// largest is the size of the largest body: a little less than controller-runtime reads (maxRequestSize in
	// pkg/webhook/admission/http.go).
	largest = 7<<20 - 1
	// mostElements is how many elements of lists and objects a body may have. It is several times what the largest objects have.
	mostElements = 64_000
	// perByte and perElement are about how much memory a body takes while it is decided, by its size and by its elements. It is copied, and
	// parts of it are decoded several times.
	perByte    = 8
	perElement = 1 << 10
	// small is the memory that nearly all bodies stay within. They have memory that no larger body takes: a small one is decided within a
	// millisecond or two, while decoding the largest takes a hundred.
	small = 4 << 20
	// smallMemory and largeMemory are how much memory small and larger bodies take that are decided at a time. Most of that time they wait
	// for the API server. A container has 1 GiB.
	smallMemory = 128 << 20
	largeMemory = 128 << 20
	// waitingBytes is how many bytes are kept of bodies that are not decided yet.
	waitingBytes = 16 << 20
)

var (
	errTooMany  = errors.New("too many other requests are waiting")
	errTooLarge = errors.New("the request is too large")
)

// bodies are the bodies that wait until they have been read and get a place to be decided. Only what has been read of them counts, not
// what has been announced. When that is too much, the body that has waited longest is dropped: it is read more slowly than the others
// arrive.
type bodies struct {
	small, large *semaphore.Weighted // memory
	lock         sync.Mutex
	held         int64
	waiting      list.List // of *body, in the order they came
}

// body is a body that waits.
type body struct {
	held int64
	drop context.CancelCauseFunc
	at   *list.Element // nil once it no longer waits
}

func newBodies() *bodies {
	return &bodies{small: semaphore.NewWeighted(smallMemory), large: semaphore.NewWeighted(largeMemory)}
}

// await returns the caller's body once it may be decided; leave frees its memory.
func (b *bodies) await(ctx context.Context, from io.Reader, interrupt func()) (whole []byte, leave func(), err error) {
	ctx, drop := context.WithCancelCause(ctx)
	defer drop(nil)
	waits := b.enter(drop)
	defer b.remove(waits)
	if whole, err = b.read(ctx, waits, from, interrupt); err != nil {
		return nil, nil, err
	}
	count := apps.Elements(whole)
	if count > mostElements {
		return nil, nil, errTooLarge
	}
	memory, takes := b.small, int64(len(whole)*perByte+count*perElement)
	if takes > small {
		memory = b.large
	}
	if memory.Acquire(ctx, takes) != nil {
		return nil, nil, context.Cause(ctx)
	}
	return whole, func() { memory.Release(takes) }, nil
}

// read reads the body. The interrupt ends that when it takes too long or the body is dropped.
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

// grow counts the bytes that have been read. When they are too many, it drops the bodies that have waited longest, maybe this one.
func (b *bodies) grow(waits *body, n int) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if waits.at == nil {
		return
	}
	waits.held += int64(n)
	b.held += int64(n)
	for b.held > waitingBytes {
		longest := b.waiting.Front().Value.(*body)
		b.forget(longest)
		longest.drop(errTooMany)
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

// counted is a reader that counts what is read of a body.
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

// bounded keeps the requests to a hook within the limits of bodies and within Patience. A request that gets no place gets an HTTP error
// instead of an admission response, so that the webhook's failurePolicy decides. A manager that shuts down still answers the requests
// that it has received: net/http would cancel them first, and the handlers allow a request if their reads fail.
type bounded struct {
	http.Handler
	bodies *bodies
}

func (b bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patienceWith(r))
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
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(whole))
	b.Handler.ServeHTTP(w, r)
}

// patienceWith returns how long the request may take. The API server says in the query for how long it waits for the answer (callHook in
// apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go). A sixth of that is for the answer's way back: an answer that comes too
// late is none, and failurePolicy lets the write pass.
func patienceWith(r *http.Request) time.Duration {
	waits, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || waits <= 0 {
		return Patience
	}
	return min(Patience, waits-waits/6)
}

func codeOf(err error) int {
	switch {
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errTooMany), errors.Is(err, context.DeadlineExceeded):
		return http.StatusTooManyRequests
	}
	return http.StatusBadRequest
}
