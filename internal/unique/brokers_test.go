package unique_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

// brokers runs a test on each broker.
func brokers(t *testing.T, f func(t *testing.T, url string)) {
	t.Parallel()
	run := strings.ToLower(rand.Text())
	for name, url := range map[string]func(t *testing.T) string{
		"memory": func(*testing.T) string { return "memory://" },
		"disk":   func(t *testing.T) string { return "disk://" + t.TempDir() },
		"redis":  func(t *testing.T) string { return redistest.Shared(t).URL() + "?prefix=unique-" + run },
		"redisstream": func(t *testing.T) string {
			return strings.Replace(redistest.Shared(t).URL(), "redis:", "redisstream:", 1) + "?prefix=unique-" + run + "s"
		},
		"kafka": func(t *testing.T) string {
			return "kafka://" + kafkatest.Shared(t).Addrs()[0] + "/?namespace=unique-" + run + "."
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, url(t))
		})
	}
}

func openRig(t *testing.T, url string) *rig {
	t.Helper()
	b, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return &rig{t: t, ctx: context.Background(), broker: b}
}

// eventually publishes until it is accepted.
func (r *rig) eventually(opts ...ferry.PublishOption) string {
	r.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		receipt, err := r.publish(opts...)
		if err == nil {
			return receipt.ID
		}
		if !errors.Is(err, ferry.ErrConflict) || time.Now().After(deadline) {
			r.t.Fatal(err)
		}
	}
}

// Many publish a few ids at once while two groups handle them: of each id never two are unsettled, and every id comes
// again and again.
func TestOnEveryBroker(t *testing.T) {
	brokers(t, func(t *testing.T, url string) {
		r := openRig(t, url)
		const ids, rounds, callers = 3, 4, 3
		var handled [2]atomic.Int64
		var unsettled [ids]sync.Map // message ids by group
		for g := range 2 {
			group := fmt.Sprint("g", g)
			r.work(group, func(_ context.Context, d *ferry.Delivery) error {
				if d.Attempt == 1 && len(d.ID)%2 == 0 {
					return errBilling
				}
				n := d.Body[0] - '0'
				if other, taken := unsettled[n].LoadOrStore(group, d.ID); taken && other != d.ID {
					t.Errorf("group %s handles %s while %s is in hand", group, d.ID, other)
				}
				time.Sleep(5 * time.Millisecond)
				unsettled[n].Delete(group)
				handled[g].Add(1)
				return nil
			}, worker.Retry(ferry.Delays(10*time.Millisecond)))
		}
		var all sync.WaitGroup
		for n := range ids {
			for range callers {
				all.Go(func() {
					for range rounds {
						r.eventuallyAs(fmt.Sprint(n))
					}
				})
			}
		}
		all.Wait()
		for deadline := time.Now().Add(
			time.Minute); handled[0].Load()+handled[1].Load() < 2*ids*rounds*callers; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d and %d are handled", handled[0].Load(), handled[1].Load())
			}
		}
	})
}

func (r *rig) eventuallyAs(id string) {
	r.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := ferry.Publish(r.ctx, r.broker, topic, []byte(id), ferry.Unique(id, time.Hour))
		if err == nil {
			return
		}
		if !errors.Is(err, ferry.ErrConflict) || time.Now().After(deadline) {
			r.t.Errorf("id %s: %v", id, err)
			return
		}
	}
}

// What a worker never settles is noticed: a message that is removed makes room for the next.
func TestRemovedOnEveryBroker(t *testing.T) {
	brokers(t, func(t *testing.T, url string) {
		r := openRig(t, url)
		receipt, err := r.publish()
		if err != nil {
			t.Fatal(err)
		}
		r.refused(receipt.ID)
		if errs := r.broker.Driver().Delete(r.ctx,
			[]driver.Target{{Topic: topic, ID: receipt.ID, Ref: receipt.Ref}}); errs[0] != nil {
			t.Fatal(errs[0])
		}
		second := r.eventually()
		r.refused(second)
	})
}

// A publish that is a duplicate of a message that was stored without its claim has not got the id: nothing would free
// it. The same publish again, under the claim of the first try, has.
func TestDuplicateOnEveryBroker(t *testing.T) {
	brokers(t, func(t *testing.T, url string) {
		r := openRig(t, url)
		again := ferry.Dedup("order 7", time.Hour)
		if _, err := ferry.Publish(r.ctx, r.broker, topic, []byte("x"), ferry.ID("a"), again); err != nil {
			t.Fatal(err)
		}
		for _, id := range []ferry.PublishOption{ferry.ID("a"), ferry.ID("b")} {
			receipt, err := r.publish(id, again)
			if err != nil || !receipt.Duplicate || receipt.ID != "a" {
				t.Fatalf("%+v, %v; want a duplicate of a", receipt, err)
			}
		}
		if n := r.values(); n != 0 {
			t.Errorf("%d ids are taken", n)
		}
		taker := r.accepted(ferry.ID("c"))
		receipt, err := r.publish(ferry.ID("c"))
		if err != nil || !receipt.Duplicate || receipt.ID != taker {
			t.Fatalf("%+v, %v; want a duplicate of c", receipt, err)
		}
		r.refused(taker)
		if errs := r.broker.Driver().Delete(r.ctx, []driver.Target{{Topic: topic, ID: taker}}); errs[0] != nil {
			t.Fatal(errs[0])
		}
		r.refused(r.eventually())
	})
}

// Where a process is killed, and after how long its id is free at the latest.
const (
	afterClaim  = "after the claim, before the message is stored"
	afterStore  = "after the message is stored, before anything is noted"
	afterSettle = "after the message is settled, before the value is removed"
)

// A process is killed at any line: there are never two, and at worst the id is taken until its time is over.
func TestKilled(t *testing.T) {
	if url := os.Getenv("FERRY_UNIQUE_URL"); url != "" {
		beKilled(t, url, os.Getenv("FERRY_UNIQUE_AT"))
		return
	}
	brokers(t, func(t *testing.T, url string) {
		if strings.HasPrefix(url, "memory:") {
			t.Skip("the broker dies with the process")
		}
		for i, at := range []string{afterClaim, afterStore, afterSettle} {
			t.Run(at, func(t *testing.T) {
				url := url
				switch {
				case strings.HasPrefix(url, "disk:"):
					url = "disk://" + t.TempDir()
				case strings.HasPrefix(url, "kafka:"):
					url = strings.TrimSuffix(url, ".") + fmt.Sprint(i) + "."
				default:
					url += fmt.Sprint(i)
				}
				killed(t, url, at)
			})
		}
	})
}

func killed(t *testing.T, url, at string) {
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$", "-test.count=1")
	c.Env = append(os.Environ(), "FERRY_UNIQUE_URL="+url, "FERRY_UNIQUE_AT="+at)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Success() || exit.ExitCode() != -1 {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	r := openRig(t, url)
	if at == afterStore {
		r.refused("first")
		got := make(chan string, 10)
		r.work("default", func(_ context.Context, d *ferry.Delivery) error { got <- d.ID; return nil })
		if id := <-got; id != "first" {
			t.Errorf("handled %s", id)
		}
		r.eventually(ferry.Unique("r1", 5*time.Second))
		return
	}
	second := r.eventually(ferry.Unique("r1", time.Hour))
	r.refused(second)
	if at == afterSettle && strings.HasPrefix(url, "kafka:") {
		return // the settlement may be lost with the process
	}
	stats, err := r.broker.Driver().Stats(r.ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range stats.Groups {
		if n := g.Ready + g.Inflight + g.Waiting; n != 1 {
			t.Errorf("%d messages in group %s", n, g.Group)
		}
	}
}

// beKilled publishes, and ends its own process at a line.
func beKilled(t *testing.T, url, at string) {
	b, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	die := func(_ context.Context, _ faulty.Call, do func()) error {
		if at != afterClaim {
			do()
		}
		_ = self.Kill()
		select {}
	}
	d := faulty.New(b.Driver())
	ttl := 3 * time.Second
	switch at {
	case afterClaim:
		d.Set(faulty.Publish, die)
	case afterStore:
		d.Set(faulty.Publish, die)
		ttl = time.Hour
	case afterSettle:
		d.Set(faulty.Settle, die)
	}
	r := newRig(t, d)
	if at == afterSettle {
		r.work("default", func(context.Context, *ferry.Delivery) error { return nil })
	}
	if _, err := r.publish(ferry.ID("first"), ferry.Unique("r1", ttl)); err != nil {
		t.Fatal(err)
	}
	select {}
}
