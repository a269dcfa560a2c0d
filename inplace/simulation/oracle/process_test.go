package simulation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/stayput/stayput/inplace/internal/fixture"
)

func init() {
	began = time.Now // the bubble's
	// What controllers log about errors is no matter here, and its back-off remembers the time of another bubble.
	utilruntime.ErrorHandlers = nil
	klog.SetLogger(logr.Discard())
	within = func(t *testing.T, simulate func()) {
		synctest.Test(t, func(*testing.T) {
			simulate()
			endAll()
		})
	}
}

// running are the processes that have not ended.
var running []*process

// endAll ends all processes.
func endAll() {
	for _, each := range running {
		each.end()
	}
	running = nil
}

// process is a controller of Kubernetes that runs until it waits for a turn, for the answer to a request, for an event, or for time.
type process struct {
	*world
	watches map[int]delivers
	// main is the watch of what it syncs.
	main int
	// serve is the API server.
	serve func(call) (any, error)
	// atomic says that nothing happens between two requests of a sync. some says that only some of the keys have a turn.
	// inOrder says that requests of several goroutines are answered in order.
	atomic, some, inOrder bool
	ctx                   context.Context
	stop                  context.CancelFunc

	// driver is the goroutine of the world, which handles events.
	driver string

	lock    sync.Mutex
	calls   []call
	turns   []turn
	stopped bool
}

// goroutine returns the name of the goroutine that calls it.
func goroutine() string {
	text := make([]byte, 32)
	name, _, _ := bytes.Cut(text[:runtime.Stack(text, false)], []byte(" ["))
	return string(name)
}

// turn is a worker that is about to read the workload of a key.
type turn struct {
	key  string
	goes chan struct{}
}

// call is a request to the API server.
type call struct {
	verb, resource, name, sub string
	body                      []byte
	answer                    chan *http.Response
}

func (c call) text() string {
	return c.verb + " " + c.resource + "/" + c.name + "/" + c.sub + " " + string(c.body)
}

// decode decodes the body.
func decode[T any](c call) (object T) {
	if err := json.Unmarshal(c.body, &object); err != nil {
		panic(err)
	}
	return object
}

func newProcess(w *world, main int, serve func(call) (any, error)) *process {
	p := &process{world: w, main: main, serve: serve, watches: map[int]delivers{}, atomic: w.seed%2 == 0, driver: goroutine()}
	running = append(running, p)
	p.ctx, p.stop = context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	return p
}

// client returns a client whose requests the process makes.
func (p *process) client() kubernetes.Interface {
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://api", QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, &http.Client{Transport: p})
	if err != nil {
		panic(err)
	}
	return client
}

// start starts the controller with what its caches have.
func (p *process) start(run func(ctx context.Context, workers int)) {
	go run(p.ctx, 5)
	p.settle()
	for _, number := range slices.Sorted(maps.Keys(p.watches)) {
		p.watches[number].list()
	}
	p.settle()
}

// settle lets it go on up to the world's time, until it waits.
func (p *process) settle() {
	time.Sleep(p.now.Sub(time.Now()))
	synctest.Wait()
}

// end ends it at once. What it was about to write it does not write.
func (p *process) end() {
	p.stop()
	p.lock.Lock()
	p.stopped = true
	calls, turns := p.calls, p.turns
	p.calls, p.turns = nil, nil
	p.lock.Unlock()
	for _, turn := range turns {
		close(turn.goes)
	}
	for _, c := range calls {
		c.answer <- p.response(c, nil, errStopped)
	}
	synctest.Wait()
}

var errStopped = errors.New("the process has stopped")

// await waits for a turn, unless an event is handled.
func (p *process) await(key string) {
	if goroutine() == p.driver {
		return
	}
	p.lock.Lock()
	if p.stopped {
		p.lock.Unlock()
		return
	}
	mine := turn{key, make(chan struct{})}
	p.turns = append(p.turns, mine)
	p.lock.Unlock()
	<-mine.goes
}

// RoundTrip makes the request wait for its answer. Events have theirs at once.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	c := call{verb: r.Method, answer: make(chan *http.Response, 1)}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		c.body = body
	}
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/shop/")
	parts := append(strings.Split(path, "/"), "", "")
	c.resource, c.name, c.sub = parts[0], parts[1], parts[2]
	if c.resource == "events" {
		return jsonOf(http.StatusCreated, c.body), nil
	}
	if goroutine() == p.driver { // a handler of an event asks
		object, err := p.serve(c)
		return p.response(c, object, err), nil
	}
	p.lock.Lock()
	if p.stopped {
		p.lock.Unlock()
		return p.response(c, nil, errStopped), nil
	}
	p.calls = append(p.calls, c)
	p.lock.Unlock()
	return <-c.answer, nil
}

func (p *process) deliver(watch, n int) {
	if p.watches[watch] == nil {
		return
	}
	p.settle()
	p.watches[watch].deliver(n)
}

// again is a resync of that watch.
func (p *process) again(watch int) {
	p.settle()
	p.watches[watch].again()
}

// run lets all workers go on that wait for a turn, and serves all their requests. If the process is not atomic, it makes one step only.
func (p *process) run() {
	p.settle()
	if !p.atomic {
		p.step()
		return
	}
	for _, turn := range p.takeTurns() {
		close(turn.goes)
		synctest.Wait()
		for len(p.calls) > 0 {
			p.answerOne()
		}
	}
}

// step answers one request, or gives one turn.
func (p *process) step() {
	if n := len(p.calls) + min(1, len(p.turns)); n > 0 && p.rng.Intn(n) < len(p.calls) {
		p.answerOne()
		return
	}
	for _, turn := range p.takeTurns() {
		close(turn.goes)
		synctest.Wait()
	}
}

// takeTurns returns the turns by key; some of them if only some have one.
func (p *process) takeTurns() (taken []turn) {
	slices.SortFunc(p.turns, func(a, b turn) int { return cmp.Compare(a.key, b.key) })
	var left []turn
	for _, turn := range p.turns {
		if p.some && p.rng.Intn(3) == 0 {
			left = append(left, turn)
		} else {
			taken = append(taken, turn)
		}
	}
	p.turns = left
	return taken
}

// answerOne answers some request. Of requests that come from several goroutines at a time, the order in which they come is chance.
func (p *process) answerOne() {
	slices.SortFunc(p.calls, func(a, b call) int { return cmp.Compare(a.text(), b.text()) })
	at := 0
	if !p.inOrder {
		at = p.rng.Intn(len(p.calls))
	}
	c := p.calls[at]
	p.calls = slices.Delete(p.calls, at, at+1)
	object, err := p.serve(c)
	c.answer <- p.response(c, object, err)
	synctest.Wait()
}

// response returns the answer of the API server.
func (p *process) response(c call, object any, err error) *http.Response {
	if err != nil {
		object = p.status(c, err)
	}
	body, encoding := json.Marshal(object)
	if encoding != nil {
		panic(encoding)
	}
	code := http.StatusOK
	if status, is := object.(metav1.Status); is {
		code = int(status.Code)
	}
	return jsonOf(code, body)
}

func jsonOf(code int, body []byte) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body))}
}

func (p *process) status(c call, err error) metav1.Status {
	resource := schema.GroupResource{Resource: c.resource}
	var status *apierrors.StatusError
	switch {
	case errors.Is(err, errNotFound):
		status = apierrors.NewNotFound(resource, c.name)
	case errors.Is(err, fixture.ErrConflict) && c.verb == http.MethodPost:
		status = apierrors.NewAlreadyExists(resource, c.name)
	case errors.Is(err, fixture.ErrConflict):
		status = apierrors.NewConflict(resource, c.name, err)
	case errors.Is(err, errHeldForEvent):
		status = apierrors.NewConflict(resource, c.name, err)
		status.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	case errors.Is(err, errHeld):
		status = apierrors.NewConflict(resource, c.name, err)
	case errors.Is(err, errQuota):
		status = apierrors.NewForbidden(resource, c.name, err)
	default:
		status = apierrors.NewInternalError(err)
	}
	status.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status.ErrStatus
}
