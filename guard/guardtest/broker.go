package guardtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

// RunBroker checks that guards keep the promises of a broker: order by key, no attempt burnt, nothing lost, nobody
// harmed by others. Open returns an empty broker, which the suite closes.
func RunBroker(t *testing.T, open func(t testing.TB) *ferry.Broker) {
	for name, run := range map[string]func(t *testing.T, b *ferry.Broker){
		"order-is-kept-by-every-layer":  orderIsKept,
		"a-limited-key-harms-nobody":    limitedKeyHarmsNobody,
		"an-open-breaker-burns-nothing": openBreakerBurnsNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			defer func() {
				if err := b.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			run(t, b)
		})
	}
}

const brokerTopic = "guarded"

var errFlaky = errors.New("the downstream failed")

// sequence is what a handler saw: of each key the messages in order, each once.
type sequence struct {
	mu       sync.Mutex
	next     map[string]int
	running  map[string]bool
	attempts int // the most of one message
	handled  int
	want     int
	done     chan struct{}
}

func newSequence(want int) *sequence {
	return &sequence{next: map[string]int{}, running: map[string]bool{}, want: want, done: make(chan struct{})}
}

func (s *sequence) begin(t testing.TB, d *ferry.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, number, _ := strings.Cut(string(d.Body), ":")
	if n, _ := strconv.Atoi(number); n != s.next[key] || s.running[key] {
		t.Errorf("%s starts where %d is due (another runs: %v)", d.Body, s.next[key], s.running[key])
	}
	s.running[key] = true
	s.attempts = max(s.attempts, d.Attempt)
}

func (s *sequence) end(d *ferry.Delivery, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, _, _ := strings.Cut(string(d.Body), ":")
	s.running[key] = false
	if !ok {
		return
	}
	s.next[key]++
	if s.handled++; s.handled == s.want {
		close(s.done)
	}
}

func (s *sequence) wait(t testing.TB) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Fatalf("%d of %d handled after a minute", s.handled, s.want)
	}
}

func publishKeys(t testing.TB, b *ferry.Broker, keys, each int) {
	t.Helper()
	var ms []*ferry.Message
	for i := range each {
		for k := range keys {
			key := "k" + strconv.Itoa(k)
			ms = append(ms, &ferry.Message{Topic: brokerTopic, Key: key, Body: fmt.Appendf(nil, "%s:%d", key, i)})
		}
	}
	if _, err := b.PublishBatch(t.Context(), ms); err != nil {
		t.Fatal(err)
	}
}

// runWorkers runs some workers until the function that it returns is called.
func runWorkers(t testing.TB, b *ferry.Broker, n int, handler worker.Handler, middleware func() []worker.Middleware,
	opts ...worker.HandlerOption) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range n {
		w := worker.New(b, worker.Options{Concurrency: 8})
		worker.HandleRaw(w, brokerTopic, handler, append(opts, worker.Use(middleware()...))...)
		wg.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// orderIsKept puts every layer before a flaky handler on two workers.
func orderIsKept(t *testing.T, b *ferry.Broker) {
	const keys, each = 12, 8
	store := guard.NewMemory(guard.MemoryOptions{})
	seen := newSequence(keys * each)
	layers := func() []worker.Middleware {
		return guard.Layers{
			Limit: must[*guard.Limiter](t)(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{
				{Name: "key", Rule: guard.Rule{Limit: 3, Window: 100 * time.Millisecond}},
				{Name: "all", Key: guard.Constant("x"), Rule: guard.Rule{Limit: 200, Window: time.Second, Burst: 20}},
			}})),
			Concurrency: must[*guard.Concurrency](t)(
				guard.NewConcurrency(store, guard.ConcurrencyOptions{Name: "all", Key: guard.Constant("x"), Max: 5})),
			Dedup: must[*guard.Dedup](t)(guard.NewDedup(store, guard.DedupOptions{Name: "once"})),
			Breaker: must[*guard.Breaker](t)(
				guard.NewBreaker(guard.BreakerOptions{Name: "down", Failures: 2, Open: 100 * time.Millisecond})),
		}.Middleware()
	}
	publishKeys(t, b, keys, each)
	stop := runWorkers(t, b, 2, func(_ context.Context, d *ferry.Delivery) (err error) {
		seen.begin(t, d)
		defer func() { seen.end(d, err == nil) }()
		if d.Attempt == 1 && len(d.ID)%2 == int(d.Body[len(d.Body)-1])%2 {
			return errFlaky
		}
		return nil
	}, layers, worker.Retry(ferry.Delays(20*time.Millisecond)), worker.MaxAttempts(4))
	defer stop()
	seen.wait(t)
	stop()
	checkGroup(t, b, keys*each, 0)
	if seen.attempts > 2 {
		t.Errorf("a message that fails once needed %d attempts", seen.attempts)
	}
}

// limitedKeyHarmsNobody lets one key be far over its limit among many others.
func limitedKeyHarmsNobody(t *testing.T, b *ferry.Broker) {
	const others, bad = 100, 20
	store := guard.NewMemory(guard.MemoryOptions{})
	limiter := must[*guard.Limiter](t)(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{
		{Name: "key", Rule: guard.Rule{Limit: 1, Window: time.Hour}}}}))
	var ms []*ferry.Message
	for i := range bad {
		ms = append(ms, &ferry.Message{Topic: brokerTopic, Key: "bad", Body: fmt.Appendf(nil, "bad:%d", i)})
	}
	if _, err := b.PublishBatch(t.Context(), ms); err != nil {
		t.Fatal(err)
	}
	seen := newSequence(others + 1)
	publishKeys(t, b, others, 1)
	stop := runWorkers(t, b, 1, func(_ context.Context, d *ferry.Delivery) error {
		seen.begin(t, d)
		seen.end(d, true)
		return nil
	}, func() []worker.Middleware { return []worker.Middleware{limiter.Middleware()} })
	defer stop()
	seen.wait(t)
	stop()
	checkGroup(t, b, others+1, bad-1)
	if n := limiter.Stats().Refused; n > 10 {
		t.Errorf("the limited key was refused %d times: it did not wait", n)
	}
}

// openBreakerBurnsNothing lets a downstream be away for a while: all is handled in the end, in order, with few
// attempts.
func openBreakerBurnsNothing(t *testing.T, b *ferry.Broker) {
	const keys, each = 10, 3
	breaker := must[*guard.Breaker](t)(
		guard.NewBreaker(guard.BreakerOptions{Name: "down", Failures: 3, Open: 200 * time.Millisecond}))
	seen := newSequence(keys * each)
	publishKeys(t, b, keys, each)
	stop := runWorkers(t, b, 1, func(_ context.Context, d *ferry.Delivery) (err error) {
		seen.begin(t, d)
		defer func() { seen.end(d, err == nil) }()
		if breaker.Stats().Refused < 2*keys { // of each key one waits: it opens twice at least
			return errFlaky
		}
		return nil
	}, func() []worker.Middleware {
		return []worker.Middleware{breaker.Middleware()}
	}, worker.Retry(ferry.Delays(10*time.Millisecond)), worker.MaxAttempts(20))
	defer stop()
	seen.wait(t)
	stop()
	checkGroup(t, b, keys*each, 0) // none dead: one that never opened would have burnt all attempts
}

// checkGroup waits until the broker says that so many are acknowledged and so many left; none died.
func checkGroup(t *testing.T, b *ferry.Broker, acked, left int) {
	t.Helper()
	s, err := b.Driver().Stats(t.Context(), brokerTopic)
	if err != nil {
		t.Fatal(err)
	}
	var g driver.GroupStats
	for _, one := range s.Groups {
		if one.Group == driver.DefaultGroup {
			g = one
		}
	}
	if b.Driver().Capabilities().Counts != driver.CountsExact {
		if n := listed(t, b); n != left || g.Dead != 0 {
			t.Errorf("%d are listed, want %d; %+v, want none dead", n, left, g)
		}
		return
	}
	if int(g.Acked) != acked || int(g.Ready+g.Waiting+g.Inflight) != left || g.Dead != 0 {
		t.Errorf("%+v, want %d acked, %d left and none dead", g, acked, left)
	}
}

// listed counts what is not finished by looking at it, where the broker's own counts are estimates.
func listed(t *testing.T, b *ferry.Broker) (n int) {
	t.Helper()
	for _, state := range []driver.State{driver.StateReady, driver.StateInflight, driver.StateWaiting} {
		q := driver.Query{Topic: brokerTopic, Group: driver.DefaultGroup, State: state, Limit: 100}
		for more := true; more; more = q.Cursor != "" {
			p, err := b.Driver().Browse(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			n += len(p.Entries)
			q.Cursor = p.Next
		}
	}
	return n
}
