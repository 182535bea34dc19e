package kafka_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// bury makes dead letters, and returns what they are called.
func bury(t testing.TB, d *kafka.Driver, n int) []driver.Target {
	t.Helper()
	s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "orders", Instance: "x", Lease: time.Minute,
		MaxInflight: n})
	if err != nil {
		t.Fatal(err)
	}
	ms, targets := make([]*driver.Message, n), make([]driver.Target, n)
	for i := range ms {
		ms[i] = message(fmt.Sprintf("m%05d", i), fmt.Sprint("k", i))
		targets[i] = target(ms[i].ID)
	}
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	for left := n; left > 0; {
		ds, err := s.Receive(t.Context(), left)
		if err != nil {
			t.Fatal(err)
		}
		xs := make([]driver.Settlement, len(ds))
		for i, x := range ds {
			xs[i] = driver.Settlement{Delivery: x, Outcome: driver.Dead,
				Failure: &driver.Failure{Reason: driver.ReasonFatal, Error: "test"}}
		}
		for _, err := range s.Settle(t.Context(), xs) {
			if err != nil {
				t.Fatal(err)
			}
		}
		left -= len(ds)
	}
	if err := d.CommitDirty(t.Context(), "orders", driver.DefaultGroup); err != nil {
		t.Fatal(err)
	}
	return targets
}

// queue is one for dead letters. The driver stays the caller's.
func queue(t testing.TB, d driver.Driver) *deadletter.Queue {
	t.Helper()
	b, err := ferry.New(d, ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := deadletter.New(b)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// countRequests counts what is sent, but for what goes on all the time.
func countRequests(c *kfake.Cluster) *atomic.Int32 {
	var sent atomic.Int32
	c.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		switch req.(type) {
		case *kmsg.FetchRequest, *kmsg.HeartbeatRequest, *kmsg.OffsetCommitRequest:
		default:
			sent.Add(1)
		}
		return nil, nil, false
	})
	return &sent
}

// TestManyLettersInFewRequests: many dead letters that are moved or deleted in one call are looked up and stored
// together, by their owner and by others, also by a replay of the package deadletter.
func TestManyLettersInFewRequests(t *testing.T) {
	t.Parallel()
	const letters = 200
	for name, change := range map[string]func(t *testing.T, d driver.Driver, targets []driver.Target) (most int){
		"move": func(t *testing.T, d driver.Driver, targets []driver.Target) int {
			ms := make([]driver.Move, len(targets))
			for i := range ms {
				ms[i] = driver.Move{Target: targets[i]}
			}
			for _, err := range d.Move(t.Context(), ms) {
				if err != nil {
					t.Fatal(err)
				}
			}
			return letters / 2
		},
		"delete": func(t *testing.T, d driver.Driver, targets []driver.Target) int {
			for _, err := range d.Delete(t.Context(), targets) {
				if err != nil {
					t.Fatal(err)
				}
			}
			return letters / 2
		},
		"replay": func(t *testing.T, d driver.Driver, _ []driver.Target) int {
			told := 0
			report, err := queue(t, d).Replay(t.Context(), deadletter.ReplayOptions{
				Selection: deadletter.Selection{Topic: "orders"}, Each: func(deadletter.LetterReport) { told++ }})
			if err != nil || report.Done != letters || told != letters {
				t.Fatalf("%+v, %d told, %v", report, told, err)
			}
			return letters
		},
	} {
		for _, who := range []string{"owner", "other"} {
			t.Run(name+" by the "+who, func(t *testing.T) {
				t.Parallel()
				c := fake(t)
				d := openFake(t, c)
				targets := bury(t, d, letters)
				by := d
				if who == "other" {
					by = again(t, d, c.ListenAddrs())
				}
				sent := countRequests(c)
				most := change(t, by, targets)
				if n := int(sent.Load()); n > most {
					t.Errorf("%d requests for %d letters, want at most %d", n, letters, most)
				}
				if page, err := d.Browse(t.Context(), driver.Query{Topic: "orders", Group: driver.DefaultGroup,
					State: driver.StateDead}); err != nil || len(page.Entries) > 0 {
					t.Errorf("%d letters are left, %v", len(page.Entries), err)
				}
			})
		}
	}
}

// TestLetterBeforeItsCommit: a letter whose message is not committed as settled, is neither moved nor deleted, by
// nobody.
func TestLetterBeforeItsCommit(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("a", "k"), message("b", "k"))
	s := subscribe(t, d, "x")
	x := receive(t, s)
	var allowed atomic.Bool
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return refusedCommit(req.(*kmsg.OffsetCommitRequest), kerr.RebalanceInProgress), nil, !allowed.Load()
	})
	settle(t, s, x, driver.Dead, 0) // the letter is stored, its place is not committed
	other := again(t, d, c.ListenAddrs())
	for _, to := range []driver.Target{{Topic: "orders", Group: driver.DefaultGroup, ID: "a", Death: 1}, target("a")} {
		if err := other.Move(t.Context(), []driver.Move{{Target: to}})[0]; !errors.Is(err, driver.ErrConflict) {
			t.Errorf("a letter whose message lives was moved: %v", err)
		}
	}
	allowed.Store(true)
	for deadline := time.Now().Add(time.Minute); ; {
		err := other.Move(t.Context(), []driver.Move{{Target: target("a")}})[0]
		if err == nil {
			break
		}
		if !errors.Is(err, driver.ErrConflict) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if x := receive(t, s); x.ID != "a" && x.ID != "b" {
		t.Errorf("received %s", x.ID)
	}
}

// BenchmarkReplay replays dead letters through the package deadletter, in a process that does not own them.
func BenchmarkReplay(b *testing.B) {
	const letters = 4000
	c := kafkatest.Shared(b)
	took := time.Duration(0)
	for range b.N {
		namespace := "b" + rand.Text()[:8] + "."
		d, by := open(b, c, namespace), open(b, c, namespace)
		bury(b, d, letters)
		start := time.Now()
		report, err := queue(b, by).Replay(b.Context(),
			deadletter.ReplayOptions{Selection: deadletter.Selection{Topic: "orders"}})
		if err != nil || report.Done != letters {
			b.Fatalf("%+v, %v", report, err)
		}
		took += time.Since(start)
		for _, x := range []*kafka.Driver{by, d} {
			if err := x.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(letters*b.N)/took.Seconds(), "letters/s")
}
