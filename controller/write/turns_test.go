package write

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// takes takes a turn and keeps it for that long. It notes the namespace when its turn comes. A capital letter is a write of the namespace
// with the small one, which takes a pod out of service.
func (n *noted) takes(t *Turns, namespace string, long time.Duration) {
	small := strings.ToLower(namespace)
	n.pending.Go(func() {
		one, err := t.take(context.Background(), written{verb: "patch", namespace: small}, namespace != small)
		if err != nil {
			panic(err)
		}
		n.lock.Lock()
		n.order = append(n.order, namespace)
		n.lock.Unlock()
		time.Sleep(long)
		one.done(errUnmeasured)
	})
	synctest.Wait() // so that writes wait in the order of the calls
}

// errUnmeasured ends a turn so that the bound stays as it is.
var errUnmeasured = errors.New("not measured")

// noted are the namespaces of turns, in their order.
type noted struct {
	pending sync.WaitGroup
	lock    sync.Mutex
	order   []string
}

func (n *noted) String() string {
	n.lock.Lock()
	defer n.lock.Unlock()
	return strings.Join(n.order, "")
}

// busy returns Turns of which both are taken by a namespace of which nothing else waits, one for that long, the other for 5 ms more.
func busy(n *noted, long time.Duration) *Turns {
	t := &Turns{}
	n.takes(t, "-", long)
	n.takes(t, "-", long+5*time.Millisecond)
	return t
}

// TestNamespacesTakeTurns: of many writes of one namespace and few of others, each namespace has one in turn, whenever it came. Pods are
// taken out of service last.
func TestNamespacesTakeTurns(t *testing.T) {
	for name, test := range map[string]struct{ waits, want string }{
		"one namespace":              {"aaaa", "aaaa"},
		"many before few":            {"aaaaaabbc", "abcabaaaa"},
		"few before many":            {"cbbaaaaaa", "cbabaaaaa"},
		"three with as many of each": {"aaabbbccc", "abcabcabc"},
		"taken out in one namespace": {"AaAa", "aaAA"},
		"taken out in another one":   {"AABbb", "bbABA"},
		"what comes later, first":    {"ABabab", "ababAB"},
		"nothing but taken out":      {"AAAcccBB", "cccABABA"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &noted{}
				turns := busy(n, 15*time.Millisecond)
				for _, namespace := range test.waits {
					n.takes(turns, string(namespace), 10*time.Millisecond)
				}
				n.pending.Wait()
				if got := strings.TrimLeft(n.String(), "-"); got != test.want {
					t.Errorf("%s had turns, want %s", got, test.want)
				}
				if len(turns.lines) > 0 || turns.inFlight != 0 {
					t.Errorf("%d writes are in flight, and %d namespaces known", turns.inFlight, len(turns.lines))
				}
			})
		})
	}
}

// TestNewNamespaceDoesNotOvertake: a namespace that comes back for each write waits for the others each time.
func TestNewNamespaceDoesNotOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &noted{}
		turns := busy(n, 15*time.Millisecond)
		for range 8 {
			n.takes(turns, "a", 10*time.Millisecond)
			n.takes(turns, "b", 10*time.Millisecond)
		}
		for _, namespace := range []string{"x", "y", "z"} {
			n.pending.Go(func() {
				for range 4 {
					one, err := turns.take(context.Background(), written{verb: "patch", namespace: namespace}, false)
					if err != nil {
						panic(err)
					}
					n.lock.Lock()
					n.order = append(n.order, namespace)
					n.lock.Unlock()
					time.Sleep(10 * time.Millisecond)
					one.done(errUnmeasured)
				}
			})
		}
		n.pending.Wait()
		first := strings.TrimLeft(n.String(), "-")[:12]
		if a, b := strings.Count(first, "a"), strings.Count(first, "b"); a < 2 || b < 2 {
			t.Errorf("the first turns are %s", first)
		}
	})
}

// TestSlowNamespaceKeepsNoOthersWaiting: writes of one namespace wait for a webhook that does not answer. Another one waits for a second at
// most, and then has half of what may be in flight.
func TestSlowNamespaceKeepsNoOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, turns := &noted{}, &Turns{}
		for range 100 {
			n.takes(turns, "a", 30*time.Second)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		from, quick := time.Now(), &noted{}
		for range 100 {
			quick.takes(turns, "b", 10*time.Millisecond)
		}
		quick.pending.Wait()
		if took := time.Since(from); took > longestTurn+100*10*time.Millisecond {
			t.Errorf("100 writes of 10 ms took %s", took)
		}
		n.pending.Wait()
	})
}

// TestWritesThatWaitForOthers: writes of which each ends only when the last one is made all end.
func TestWritesThatWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all, last sync.WaitGroup
		turns := &Turns{}
		last.Add(100)
		for range 100 {
			all.Go(func() {
				one, err := turns.take(t.Context(), written{namespace: "a"}, false)
				last.Done()
				last.Wait()
				one.done(err)
			})
		}
		all.Wait()
		if turns.inFlight != 0 || len(turns.lines) > 0 {
			t.Errorf("%d writes are in flight, and %d namespaces known", turns.inFlight, len(turns.lines))
		}
	})
}

// TestLeavesTheLine: a write whose context ends before its turn has none, and the others have theirs.
func TestLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &noted{}
		turns := busy(n, 100*time.Millisecond)
		n.takes(turns, "a", 0)
		short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer end()
		for _, namespace := range []string{"a", "gone"} {
			n.pending.Go(func() {
				one, err := turns.take(short, written{namespace: namespace}, false)
				if one != nil || !errors.Is(err, errNoTurn) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("in namespace %s: %v, %v", namespace, one, err)
				}
			})
		}
		synctest.Wait()
		n.takes(turns, "a", 0)
		n.pending.Wait()
		if one, err := turns.take(short, written{namespace: "a"}, false); one != nil || !errors.Is(err, errNoTurn) {
			t.Errorf("afterwards: %v, %v", one, err)
		}
		if n.String() != "--aa" || turns.inFlight != 0 || len(turns.lines) > 0 {
			t.Errorf("turns %s, %d in flight, %d namespaces known", n, turns.inFlight, len(turns.lines))
		}
	})
}

// apiServer is a model of an API server. Its processors divide their time among all requests, which wait for something else besides.
type apiServer struct {
	processors float64
	lock       sync.Mutex
	requests   map[*request]bool
}

type request struct {
	// work is how many milliseconds of a processor it needs.
	work float64
	done chan struct{}
}

// run works in steps of a millisecond until the context ends.
func (s *apiServer) run(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		s.lock.Lock()
		each := min(1, s.processors/float64(len(s.requests)))
		for one := range s.requests {
			if one.work -= each; one.work <= 0 {
				delete(s.requests, one)
				close(one.done)
			}
		}
		s.lock.Unlock()
	}
}

func (s *apiServer) request(work float64, waits time.Duration) {
	time.Sleep(waits)
	one := &request{work, make(chan struct{})}
	s.lock.Lock()
	s.requests[one] = true
	s.lock.Unlock()
	<-one.done
}

// fleet makes 9,000 writes in 60 namespaces, five at a time in each, beside a client that gets an object each 200 ms. It returns how long
// all writes took, and how long the slowest GET. Without turns nothing bounds the writes.
func fleet(s *apiServer, turns *Turns, waits time.Duration) (all, get time.Duration) {
	serving, stop := context.WithCancel(context.Background())
	asking, end := context.WithCancel(context.Background())
	var server, client, writers sync.WaitGroup
	server.Go(func() { s.run(serving) })
	client.Go(func() {
		for ; asking.Err() == nil; time.Sleep(200 * time.Millisecond) {
			from := time.Now()
			s.request(2, 0)
			get = max(get, time.Since(from))
		}
	})
	from := time.Now()
	for i := range 60 * 5 {
		of := written{verb: "patch", namespace: fmt.Sprint(i % 60)}
		writers.Go(func() {
			for range 30 {
				if turns == nil {
					s.request(7, waits)
					continue
				}
				one, err := turns.take(serving, of, false)
				s.request(7, waits)
				one.done(err)
			}
		})
	}
	writers.Wait()
	all = time.Since(from)
	end()
	client.Wait()
	stop()
	server.Wait()
	return all, get
}

// TestOthersBesideAFleet: with the bound, a GET beside many writes takes a fraction of what it took without, and all writes together take
// about as long. Where writes mostly wait, as for a network, the bound rises.
func TestOthersBesideAFleet(t *testing.T) {
	for name, test := range map[string]struct {
		processors float64
		waits      time.Duration
		// get is how long a GET takes at most.
		get time.Duration
	}{
		"two processors":                 {2, 0, 25 * time.Millisecond},
		"eight processors":               {8, 0, 25 * time.Millisecond},
		"writes wait for something else": {8, 20 * time.Millisecond, 25 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := func() *apiServer { return &apiServer{processors: test.processors, requests: map[*request]bool{}} }
				turns := &Turns{}
				unbound, slowest := fleet(server(), nil, test.waits)
				bound, get := fleet(server(), turns, test.waits)
				t.Logf("all writes %s and %s, slowest GET %s and %s, the bound is %d", unbound, bound, slowest, get, turns.bound.Most())
				if get > test.get || slowest < 3*get {
					t.Errorf("the slowest GET takes %s, and %s without a bound", get, slowest)
				}
				if bound > unbound*6/5 { // about a tenth more, since the bound begins low
					t.Errorf("all writes take %s, and %s without a bound", bound, unbound)
				}
			})
		})
	}
}
