// Package ferrytest helps to test programs that use Ferry: a real broker in virtual time, faults on demand, and
// expectations that say what happened instead.
//
//	func TestBilling(t *testing.T) {
//		ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
//			k.Start(newWorker(k.Broker))
//			ferry.Publish(t.Context(), k.Broker, "orders", Order{ID: 1}, ferry.Delay(time.Hour))
//			k.Drain() // an hour passes in no time
//			k.ExpectAcked("orders", 1)
//		})
//	}
//
// The broker is the memory driver with its exact semantics, so what a test shows there holds on every broker.
package ferrytest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// DrainLimit is how much virtual time Drain lets pass before it gives up.
const DrainLimit = 366 * 24 * time.Hour

// Runner is a worker, or anything else that runs until its context ends.
type Runner interface {
	Run(ctx context.Context) error
}

// Kit is a broker in virtual time and what happened on it.
type Kit struct {
	// Broker is what the program under test publishes to and consumes from.
	Broker *ferry.Broker

	t        *testing.T
	record   *recorder
	stops    []context.CancelFunc
	finished []chan error
}

// Run calls test inside a bubble of virtual time (see testing/synctest) with a fresh broker. When test returns, the
// runners it started are stopped as on SIGTERM and must end without an error.
func Run(t *testing.T, test func(t *testing.T, k *Kit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := New(t, ferry.Options{})
		test(t, k)
		k.Stop()
	})
}

// New returns a Kit inside a bubble that the caller made, with a broker of these options. Most tests use Run.
func New(t *testing.T, o ferry.Options) *Kit {
	t.Helper()
	d, err := memory.New(context.Background(), memory.Options{})
	if err != nil {
		t.Fatalf("ferrytest: %v", err)
	}
	record := newRecorder(d)
	b, err := ferry.New(record, o)
	if err != nil {
		t.Fatalf("ferrytest: %v", err)
	}
	k := &Kit{Broker: b, t: t, record: record}
	t.Cleanup(func() {
		k.Stop()
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("ferrytest: closing the broker: %v", err)
		}
	})
	return k
}

// Start runs a worker until the test ends or Stop is called, and returns when it is idle.
func (k *Kit) Start(r Runner) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	k.stops, k.finished = append(k.stops, cancel), append(k.finished, done)
	synctest.Wait()
}

// Stop ends the started runners as SIGTERM would, and waits for them.
func (k *Kit) Stop() {
	k.t.Helper()
	for i, stop := range k.stops {
		stop()
		if err := <-k.finished[i]; err != nil {
			k.t.Errorf("ferrytest: a runner ended with: %v", err)
		}
	}
	k.stops, k.finished = nil, nil
}

// Advance lets virtual time pass, and returns when everything due by then has happened.
func (k *Kit) Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Drain lets virtual time pass until nothing is ready, running, waiting for a retry or delayed. It fails the test
// when that never happens: nobody consumes, or a message is retried for ever.
func (k *Kit) Drain() {
	k.t.Helper()
	start := time.Now()
	for {
		synctest.Wait()
		left := k.unsettled()
		if left == 0 {
			return
		}
		if time.Since(start) > DrainLimit {
			k.t.Fatalf("ferrytest: %d messages are still not settled after %v. Does a worker handle each topic and group?",
				left, DrainLimit)
		}
		// Ever longer steps: a schedule months ahead takes hardly more turns than one in seconds.
		time.Sleep(max(time.Millisecond, time.Since(start)/16))
	}
}

func (k *Kit) unsettled() int64 {
	k.t.Helper()
	var n int64
	for _, s := range k.stats() {
		n += s.Delayed
		for _, g := range s.Groups {
			n += g.Ready + g.Inflight + g.Waiting
		}
	}
	return n
}

func (k *Kit) stats() []driver.TopicStats {
	k.t.Helper()
	ctx := context.Background()
	topics, err := k.record.Topics(ctx)
	if err != nil {
		k.t.Fatalf("ferrytest: %v", err)
	}
	var out []driver.TopicStats
	for _, info := range topics {
		if driver.Reserved(info.Topic) { // the next tick of a schedule is always to come
			continue
		}
		s, err := k.record.Stats(ctx, info.Topic)
		if errors.Is(err, ferry.ErrNotFound) {
			continue
		}
		if err != nil {
			k.t.Fatalf("ferrytest: %v", err)
		}
		out = append(out, s)
	}
	return out
}

// FailPublish makes the n-th publish from now (1 is the next) fail with err, before anything is stored.
func (k *Kit) FailPublish(n int, err error) { k.record.publishFaults.plan(n, err) }

// FailSettle makes the n-th settlement from now (1 is the next) fail with err, before it is applied.
func (k *Kit) FailSettle(n int, err error) { k.record.settleFaults.plan(n, err) }

// Published returns what was published to a topic so far, follow-ups of handlers included, in order: as it was given,
// whatever the broker's filters made of it.
func (k *Kit) Published(topic string) []*ferry.Message {
	synctest.Wait()
	k.record.mu.Lock()
	all := slices.Clone(k.record.published[topic])
	k.record.mu.Unlock()
	for i, m := range all {
		plain, err := k.Broker.UndoFilters(context.Background(), m)
		if err != nil {
			k.t.Errorf("ferrytest: message %s of topic %q: %v", m.ID, topic, err)
			continue
		}
		all[i] = plain
	}
	return all
}

// Settlement is how one delivery ended: its Outcome, the Failure, what was emitted.
type Settlement = driver.Settlement

// Settled returns the settlements of a topic so far that the broker accepted, in order.
func (k *Kit) Settled(topic string) []Settlement {
	synctest.Wait()
	k.record.mu.Lock()
	defer k.record.mu.Unlock()
	return slices.Clone(k.record.settled[topic])
}

// DeadLetters returns the dead letters of a topic, of all groups, oldest first within each group.
func (k *Kit) DeadLetters(topic string) []*ferry.DeadLetter {
	k.t.Helper()
	synctest.Wait()
	ctx := context.Background()
	stats, err := k.record.Stats(ctx, topic)
	if errors.Is(err, ferry.ErrNotFound) {
		return nil
	}
	if err != nil {
		k.t.Fatalf("ferrytest: %v", err)
	}
	var out []*ferry.DeadLetter
	for _, g := range stats.Groups {
		q := driver.Query{Topic: topic, Group: g.Group, State: driver.StateDead, Limit: 1000}
		for {
			page, err := k.record.Browse(ctx, q)
			if err != nil {
				k.t.Fatalf("ferrytest: %v", err)
			}
			for _, e := range page.Entries {
				out = append(out, e.Dead)
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
	}
	return out
}
