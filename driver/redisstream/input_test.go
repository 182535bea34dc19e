package redisstream_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/worker"
)

// aged is a hook that makes a server say that it is an old one.
type aged struct{ quiet }

func (aged) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if c, ok := cmd.(*goredis.StringCmd); ok && cmd.Name() == "info" {
			c.SetVal(strings.Replace(c.Val(), "redis_version:7.", "redis_version:5.", 1))
		}
		return err
	}
}

func TestOldServerIsRefused(t *testing.T) {
	t.Parallel()
	client := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	defer func() { _ = client.Close() }()
	client.AddHook(aged{})
	_, err := redisstream.New(t.Context(), redisstream.Options{Client: client})
	var e *driver.Error
	if !errors.Is(err, driver.ErrUnsupported) || !errors.As(err, &e) || !strings.Contains(e.Hint, "6.2") {
		t.Errorf("Redis 5: %v", err)
	}
}

// Who creates a topic writes it into the registry first, and may die before there is a partition: whoever comes next
// finishes it.
func TestTopicThatWasNeverFinished(t *testing.T) {
	for name, use := range map[string]func(w *world){
		"publish":   func(w *world) { w.publish(0, 5, "") },
		"subscribe": func(w *world) { w.ok(w.subscribe("host-1", time.Minute).Close(w.ctx())) },
		"ensure":    func(w *world) { w.ok(w.d.EnsureTopic(w.ctx(), "jobs", driver.TopicConfig{Keep: time.Hour})) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok(w.c.HSet(w.ctx(), "{"+w.prefix+"}/topics", "jobs", 3).Err())
			use(w)
			w.publish(5, 10, "")
			s := w.subscribe("host-2", time.Minute)
			w.publish(10, 20, "")
			if parts, err := w.d.Partitions(w.ctx(), "jobs"); err != nil || len(parts) != 3 {
				t.Errorf("%+v, %v", parts, err)
			}
			w.settle(s, driver.Ack, w.take(s, 10)...)
		})
	}
}

// What retention drops although a group has not settled it is an alarm.
func TestRetentionThatDropsWarns(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	w.publish(0, 5, "")
	var log bytes.Buffer
	d, err := redisstream.New(w.ctx(),
		redisstream.Options{URL: w.url, Prefix: w.prefix, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w.ok(err)
	w.ok(d.Retain(w.ctx(), "jobs", driver.Retention{Entries: 2, DropUnsettled: true}))
	_, err = d.Trim(w.ctx(), "jobs")
	w.ok(errors.Join(err, d.Close(w.ctx())))
	if !strings.Contains(log.String(), "retention dropped messages that were not settled") ||
		!strings.Contains(log.String(), "dropped=3") {
		t.Errorf("logged %q", &log)
	}
}

// A message whose holders die again and again ends in the dead letters.
func TestKillerMessageDies(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	w.publish(0, 1, "k")
	s := w.subscribe("host-1", time.Minute)
	for range 5 {
		w.ok(s.Begin(w.ctx(), w.take(s, 1))[0])
		tokens := w.c.ZRange(w.ctx(), w.part("g:default:lease"), 0, -1).Val()
		// as if its time were over
		w.ok(w.c.ZAdd(w.ctx(), w.part("g:default:lease"), goredis.Z{Score: 1, Member: tokens[0]}).Err())
		w.ok(w.c.HSet(w.ctx(), w.part("topic"), "next", 1).Err())
	}
	w.ok(s.Drain(w.ctx())) // not Close: it is never heard of again
	b, err := ferry.New(w.d, ferry.Options{})
	w.ok(err)
	runs := worker.New(b, worker.Options{MaxDeliveries: 5})
	worker.HandleRaw(runs, "jobs", func(_ context.Context, d *ferry.Delivery) error {
		t.Errorf("it was run again, with delivery %d", d.Deliveries)
		return nil
	})
	ctx, stop := context.WithCancel(w.ctx())
	ended := make(chan error, 1)
	go func() { ended <- runs.Run(ctx) }()
	w.until("it is dead", func() bool {
		st, err := w.d.Stats(w.ctx(), "jobs")
		w.ok(err)
		return st.Groups[0].Dead == 1
	})
	stop()
	w.ok(<-ended)
	page, err := w.d.Browse(w.ctx(), driver.Query{Topic: "jobs", Group: "default", State: driver.StateDead})
	w.ok(err)
	if dl := page.Entries[0].Dead; dl.Reason != driver.ReasonMaxDeliveries || dl.Deliveries != 6 {
		t.Errorf("%+v", dl)
	}
	w.sound()
}

// A cursor that is not ours is refused before it reaches a script.
func TestForeignCursors(t *testing.T) {
	w := newWorld(t)
	w.publish(0, 3, "")
	for state, cursors := range map[driver.State][]string{
		driver.StateDead:    {"0:", "d", "d1", "d,,,,,,,x", "d,,,,,,,,"},
		driver.StateReady:   {"d,,,,,,,", "0", "8:", "-1:", "0:x", "0:s", "0:s1-x"},
		driver.StateDelayed: {"0:s0-0", "x:1"},
	} {
		for _, cursor := range cursors {
			if _, err := w.d.Browse(w.ctx(),
				driver.Query{Topic: "jobs", Group: "default", State: state, Cursor: cursor}); !errors.Is(err, driver.ErrInvalid) {
				t.Errorf("Browse of %s behind %q: %v, want ErrInvalid", state, cursor, err)
			}
		}
	}
}
