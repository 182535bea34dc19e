package transaction_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	byurl "github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/transaction"
)

// brokers return the URLs of empty brokers that outlive a process, by name.
var brokers = map[string]func(t testing.TB) string{
	"disk":  func(t testing.TB) string { return "disk://" + t.TempDir() },
	"redis": func(t testing.TB) string { return redistest.Shared(t).URL() + "?prefix=" + rand.Text() },
	"redisstream": func(t testing.TB) string {
		return strings.Replace(redistest.Shared(t).URL(), "redis", "redisstream", 1) + "?partitions=2&prefix=" + rand.Text()
	},
	"kafka": func(t testing.TB) string {
		return "kafka://" + kafkatest.Shared(t).Addrs()[0] +
			"/?transactions=true&partitions=2&internal_partitions=1&namespace=" + strings.ToLower(rand.Text()) + "."
	},
}

func opened(t testing.TB, url string) *ferry.Broker {
	t.Helper()
	b, err := byurl.URL(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

// await looks until done holds.
func await(t testing.TB, done func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it never happened")
		}
	}
}

// On every broker: halves are seen after the commit and never after a rollback, in order of commits by key; decisions
// by hand.
func TestOnEveryBroker(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) { onBroker(&rig{T: t, b: opened(t, "memory://")}) })
	for name, url := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBroker(&rig{T: t, b: opened(t, url(t))})
		})
	}
}

func onBroker(r *rig) {
	r.d = r.b.Driver()
	ctx := r.Context()
	first, second, third, fourth := r.begin(r.b, transaction.Options{}), r.begin(r.b, transaction.Options{}),
		r.begin(r.b, transaction.Options{}), r.begin(r.b, transaction.Options{})
	for _, tx := range []*transaction.Tx{first, second, third, fourth} {
		r.publish(tx, "a", "b")
	}
	r.has(0, 4, "a", "b")
	if n := len(open(r.T, r.b)); n != 4 {
		r.Errorf("%d are open", n)
	}
	r.ok(second.Commit(ctx))
	r.ok(third.Rollback(ctx))
	_, err := transaction.Rollback(ctx, r.b, fourth.ID())
	r.ok(err)
	r.wants(fourth.Commit(ctx), ferry.ErrConflict)
	_, err = transaction.Commit(ctx, r.b, first.ID())
	r.ok(err)
	r.wants(first.Rollback(ctx), ferry.ErrConflict)
	for _, topic := range []string{"a", "b"} {
		sub, err := r.d.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "i"})
		r.ok(err)
		var ids []string
		for len(ids) < 2 {
			ds, err := sub.Receive(ctx, 1)
			r.ok(err)
			ids = append(ids, ds[0].ID)
			r.ok(sub.Settle(ctx, []driver.Settlement{{Delivery: ds[0]}})[0])
		}
		r.ok(sub.Close(ctx))
		place := map[string]int{"a": 0, "b": 1}[topic]
		if want := []string{halfID(second, place), halfID(first, place)}; ids[0] != want[0] || ids[1] != want[1] {
			r.Errorf("topic %s has %v, want %v", topic, ids, want)
		}
	}
	r.has(0, 0, "a", "b")
}

func halfID(tx *transaction.Tx, place int) string {
	return driver.EmitID("transaction/"+tx.ID(), place)
}

// childOf tells a child process its broker, and before which of its changes it is killed.
const childOf = "FERRY_TEST_TRANSACTION"

// child runs a transaction in a process of its own until it is killed. It reports false in that of the tests.
func child() bool {
	url, before, ok := strings.Cut(os.Getenv(childOf), "|")
	if !ok {
		return false
	}
	ctx := context.Background()
	b, err := byurl.URL(ctx, url)
	if err == nil {
		step, _ := strconv.Atoi(before)
		b, err = ferry.New(changing(b.Driver(), func(n int) faulty.Fault {
			if n == step {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		}), ferry.Options{})
	}
	var worked atomic.Bool
	if err == nil {
		err = produce(ctx, b, &worked)
	}
	fmt.Println("it was not killed:", err)
	return true
}

// decision is the step of the decision: after two lists of halves and two publishes. What follows are three moves and
// two notes.
const decision, steps = 5, 10

// A producer that is killed with -9 before any of its steps leaves all halves or none, on every broker of several
// processes.
func TestKilled(t *testing.T) {
	t.Parallel()
	for name, of := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := of(t)
			for step := 1; step <= steps; step++ {
				kill(t, url, step)
			}
			settled(t, opened(t, url))
		})
	}
}

func kill(t *testing.T, url string, step int) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childOf+"="+url+"|"+strconv.Itoa(step))
	out, err := c.CombinedOutput()
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("it was not killed at step %d: %v %s", step, err, out)
	}
}

// settled lets a resolver end what was killed. Of those that were killed just before the decision the work was done.
func settled(t *testing.T, b *ferry.Broker) {
	r := &rig{T: t, b: b, d: b.Driver()}
	r.resolve(b, transaction.ResolverOptions{After: time.Millisecond, Every: time.Second, Look: 100 * time.Millisecond,
		Checks: map[string]transaction.Check{
			"orders": func(_ context.Context, tx transaction.Transaction) (transaction.State, error) {
				if len(tx.Halves) < 3 {
					return transaction.RolledBack, nil
				}
				for _, h := range tx.Halves {
					if _, err := b.Driver().Get(t.Context(), ferry.Target{Topic: h.Topic, ID: h.ID}); err != nil {
						return transaction.RolledBack, nil
					}
				}
				return transaction.Committed, nil
			}}})
	const want = steps - decision + 1
	await(t, func() bool {
		for _, topic := range []string{"a", "b", "c"} {
			if ready, held := counts(t, b.Driver(), topic); ready != want || held != 0 {
				return false
			}
		}
		return true
	})
	await(t, func() bool {
		for _, left := range open(t, b) {
			if left.State != transaction.RolledBack { // these wait for late halves
				return false
			}
		}
		return true
	})
	r.has(want, 0, "a", "b", "c")
}
