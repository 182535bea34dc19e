// Package scale looks at brokers on Redis that hold very much: FERRY_SCALE=1000000 go test -v ./test/torture/scale
// takes minutes and a quiet machine. Without it the tests are short, walk the same paths, and judge no times.
package scale

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tooSlow is what no command may need, by the time that the server ran. A bounded step takes a few milliseconds, on a
// slow processor perhaps 20; one that grows with what is in the topic takes seconds at a million.
const tooSlow = 50 * time.Millisecond

const (
	topic = "jobs"
	group = "workers"
	lease = time.Minute
)

// size is how many messages there are to be.
func size(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("FERRY_SCALE"), "3000"))
	if err != nil {
		t.Fatalf("FERRY_SCALE: %v", err)
	}
	return n
}

// world is a server of its own, whose clock can be set and whose commands take as long as they run, and a broker on it.
type world struct {
	*testing.T
	server *redistest.Server
	clock  *redistest.Clock
	d      driver.Driver
}

func newWorld(t *testing.T, scheme string) *world {
	t.Helper()
	clock, err := redistest.NewClock(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clock.CPU = true
	w := &world{T: t, clock: clock, server: redistest.Single(t, redistest.Options{Clock: clock})}
	b, err := open.URL(t.Context(), strings.Replace(w.server.URL(), "redis", scheme, 1))
	if err != nil {
		t.Fatal(err)
	}
	w.d = b.Driver()
	t.Cleanup(func() { w.must(b.Close(context.Background())) })
	w.must(w.d.EnsureGroup(t.Context(), topic, group, driver.GroupOptions{}))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// fill publishes n messages, of which every tenth has a key.
func (w *world) fill(n int, delay time.Duration) {
	w.Helper()
	const batch = 500
	for from := 0; from < n; from += batch {
		msgs := make([]*driver.Message, min(batch, n-from))
		for i := range msgs {
			m := &driver.Message{ID: fmt.Sprintf("m%08d", from+i), Topic: topic,
				Body: []byte("a body of some forty bytes, as many are."), Delay: delay}
			if i%10 == 0 && delay == 0 {
				m.Key = fmt.Sprintf("k%d", (from+i)%1000)
			}
			msgs[i] = m
		}
		_, err := w.d.Publish(w.Context(), msgs, driver.PublishOptions{})
		w.must(err)
	}
}

func (w *world) subscribe() driver.Subscription {
	w.Helper()
	s, err := w.d.Subscribe(w.Context(), driver.SubscribeOptions{Topic: topic, Group: group, Instance: "scale",
		Lease: lease, MaxInflight: 10_000})
	w.must(err)
	w.Cleanup(func() { w.must(s.Close(context.Background())) })
	return s
}

// settle settles deliveries alike.
func (w *world) settle(s driver.Subscription, ds []*driver.Delivery, o driver.Settlement) {
	w.Helper()
	all := make([]driver.Settlement, len(ds))
	for i, d := range ds {
		all[i] = o
		all[i].Delivery = d
	}
	for _, err := range s.Settle(w.Context(), all) {
		w.must(err)
	}
}

// forgetSlow empties the server's log of slow commands, in which whatever takes 10 ms is from now on.
func (w *world) forgetSlow() {
	w.Helper()
	for _, command := range [][]string{{"CONFIG", "SET", "slowlog-log-slower-than", "10000"},
		{"CONFIG", "SET", "slowlog-max-len", "1000"}, {"SLOWLOG", "RESET"}} {
		_, err := w.server.Command(command...)
		w.must(err)
	}
}

// slow tells of commands that held up everybody else, and complains where there are so many messages that it matters.
func (w *world) slow(what string) {
	w.Helper()
	reply, err := w.server.Command("SLOWLOG", "GET", "1000")
	w.must(err)
	worst, command := int64(0), ""
	for _, e := range reply.List {
		if took, _ := strconv.ParseInt(e.List[2].Text, 10, 64); took > worst {
			worst, command = took, e.List[3].List[0].Text
			if len(e.List[3].List) > 1 {
				command += " " + e.List[3].List[1].Text[:min(60, len(e.List[3].List[1].Text))]
			}
		}
	}
	w.Logf("%s: %d commands of 10 ms or more, the worst %.1f ms", what, len(reply.List), float64(worst)/1000)
	if took := time.Duration(worst) * time.Microsecond; took > tooSlow && os.Getenv("FERRY_SCALE") != "" {
		w.Errorf("%s: a command took %v, more than %v: %s", what, took, tooSlow, command)
	}
	_, err = w.server.Command("SLOWLOG", "RESET")
	w.must(err)
}

// Nothing that is done to a topic holds up its server for long, however much there is in it.
func TestNothingIsSlow(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"redis", "redisstream"} {
		t.Run(scheme, func(t *testing.T) {
			n := size(t)
			w := newWorld(t, scheme)
			w.forgetSlow()
			w.fill(n, 0)
			w.slow("publish")
			s := w.subscribe()
			for _, o := range []driver.Settlement{
				{Outcome: driver.Ack}, {Outcome: driver.Retry, After: time.Hour}, {Outcome: driver.Release}, {Outcome: driver.Ack},
				{Outcome: driver.Dead, Failure: &driver.Failure{Reason: driver.ReasonMaxAttempts, Error: "on purpose"}},
			} {
				ds, err := s.Receive(t.Context(), 200)
				w.must(err)
				w.settle(s, ds, o)
			}
			w.slow("receive and settle")
			_, err := w.d.Stats(t.Context(), topic)
			w.must(err)
			_, err = w.d.Topics(t.Context())
			w.must(err)
			_, err = w.d.Usage(t.Context())
			w.must(err)
			w.slow("stats")
			for _, state := range []driver.State{driver.StateReady, driver.StateWaiting, driver.StateDead} {
				_, err := w.d.Browse(t.Context(), driver.Query{Topic: topic, Group: group, State: state, Limit: 100})
				w.must(err)
			}
			w.slow("browse")
			report, err := w.d.Audit(t.Context(), topic, false)
			w.must(err)
			if len(report.Problems) > 0 {
				t.Errorf("the audit finds %d problems: %+v", len(report.Problems), report.Problems[0])
			}
			w.slow("audit")
			_, err = w.d.Purge(t.Context(), topic, group)
			w.must(err)
			w.slow("purge")
			w.must(s.Close(t.Context()))
			w.must(w.d.DeleteTopic(t.Context(), topic))
			w.slow("delete")
		})
	}
}

// What is due at the same moment is delivered, each message once, and holds up nobody. The server's clock is set, so
// that it really is the same moment.
func TestManyAreDueAtOnce(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"redis", "redisstream"} {
		t.Run(scheme, func(t *testing.T) {
			n := min(size(t), 100_000)
			w := newWorld(t, scheme)
			w.fill(n, time.Hour)
			s := w.subscribe()
			w.forgetSlow()
			w.must(w.clock.Set(time.Hour + time.Minute))
			began := time.Now()
			got := make(map[string]bool, n)
			var first time.Duration
			for len(got) < n {
				ds, err := s.Receive(t.Context(), 200)
				w.must(err)
				if len(got) == 0 {
					first = time.Since(began)
				}
				for _, d := range ds {
					if got[d.ID] || d.Deliveries != 1 {
						t.Fatalf("%s comes again: delivery %d, %v", d.ID, d.Deliveries, d.Cause)
					}
					got[d.ID] = true
				}
				w.settle(s, ds, driver.Settlement{Outcome: driver.Ack})
			}
			t.Logf("%d due at once: the first after %v, all after %v", n, first.Round(time.Millisecond),
				time.Since(began).Round(time.Millisecond))
			w.slow("all due at once")
			stats, err := w.d.Stats(t.Context(), topic)
			w.must(err)
			if stats.Messages != 0 || stats.Delayed != 0 {
				t.Errorf("%d messages left, %d delayed", stats.Messages, stats.Delayed)
			}
		})
	}
}
