package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/worker"
)

// crew is a member with one worker that runs.
func crew(t *testing.T, b *ferry.Broker, name string) *worker.Worker {
	t.Helper()
	w := worker.New(b, worker.Options{Concurrency: 4, Instance: name})
	worker.HandleRaw(w, "orders", func(ctx context.Context, _ *ferry.Delivery) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	run(t, w)
	run(t, join(t, b, cluster.Options{Name: name, Workers: []*worker.Worker{w}}))
	synctest.Wait()
	return w
}

func tell(t *testing.T, b *ferry.Broker, member string, c cluster.Command) {
	t.Helper()
	begin := time.Now()
	if err := cluster.Tell(context.Background(), b, member, c); err != nil {
		t.Errorf("%+v: %v", c, err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("%+v took %v", c, took)
	}
}

// A member obeys at once, and only the one that is meant.
func TestTell(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		first, second := crew(t, b, "web-1"), crew(t, b, "web-2")
		tell(t, b, "web-1", cluster.Command{Do: cluster.Scale, Concurrency: 9})
		tell(t, b, "web-1", cluster.Command{Do: cluster.Quiet, Topic: "orders"})
		if s := first.Stats(); s.Concurrency != 9 || !s.Consumers[0].Quiet {
			t.Errorf("web-1: %+v", s)
		}
		if s := second.Stats(); s.Concurrency != 4 || s.Consumers[0].Quiet {
			t.Errorf("web-2: %+v", s)
		}
		if _, err := ferry.Publish(context.Background(), b, "orders", 1, ferry.ID("order-1")); err != nil {
			t.Fatal(err)
		}
		pause(time.Second)
		tell(t, b, "web-1", cluster.Command{Do: cluster.Resume})
		if first.Stats().Consumers[0].Quiet {
			t.Error("web-1 is still quiet")
		}
		c := cluster.Command{Do: cluster.Cancel, Topic: "orders", ID: "order-1"}
		if err := cluster.Tell(context.Background(), b, "web-1", c); !errors.Is(err, ferry.ErrNotFound) {
			t.Errorf("the message runs elsewhere: %v", err)
		}
		tell(t, b, "web-2", c)
		pause(time.Second)
		if n := second.Stats().Consumers[0].Dropped; n != 1 {
			t.Errorf("%d dropped", n)
		}
	})
}

// A member that does not answer is told of, and the command withdrawn: it is not obeyed later. One whose answer comes
// late is believed.
func TestTellWithoutAnswer(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		w := crew(t, b, "web-1")
		f.Set(faulty.Write, faulty.Fail(ferry.ErrNotApplied))
		begin := time.Now()
		if err := cluster.Tell(context.Background(), b, "web-1",
			cluster.Command{Do: cluster.Quiet}); !errors.Is(err, ferry.ErrNotApplied) || time.Since(begin) > 6*time.Second {
			t.Errorf("the broker is away: %v after %v", err, time.Since(begin))
		}
		f.Set(faulty.Write, nil)
		if w.Stats().Consumers[0].Quiet {
			t.Error("it obeys what did not arrive")
		}
		f.Set(faulty.Write, faulty.EverySecond(faulty.Lose(ferry.ErrUnknown)))
		tell(t, b, "web-1", cluster.Command{Do: cluster.Quiet})
		f.Set(faulty.Write, nil)
		if !w.Stats().Consumers[0].Quiet {
			t.Error("it did not obey")
		}
	})
}

// A member that is there but does not run is told of as one that does not answer.
func TestTellToAFrozenMember(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		frozen := join(t, b, cluster.Options{Name: "web-1"})
		stop := run(t, frozen)
		pause(time.Second)
		// it neither leaves nor answers
		f.Set(faulty.Write, func(_ context.Context, c faulty.Call, _ func()) error {
			if name := c.Write.Name; c.Write.Delete && (!strings.Contains(name, "web-1/") || strings.Count(name, "/") == 1) {
				return ferry.ErrNotApplied
			}
			return nil
		})
		_ = stop()
		begin := time.Now()
		err := cluster.Tell(context.Background(), b, "web-1", cluster.Command{Do: cluster.Quiet})
		if !errors.Is(err, ferry.ErrNotApplied) || !strings.Contains(err.Error(), "did not answer") ||
			time.Since(begin) != cluster.AnswerWithin {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		page, err := b.Driver().KV().List(context.Background(), driver.KVQuery{Bucket: "commands", Prefix: "web-1/"})
		for _, v := range page.Values {
			if strings.Count(v.Name, "/") == 2 || err != nil {
				t.Errorf("%s is left, %v", v.Name, err)
			}
		}
	})
}

func TestTellIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		w := crew(t, b, "web-1")
		scaled := worker.New(b, worker.Options{Scaling: worker.Scaling{Max: 4}, Instance: "scaled"})
		run(t, join(t, b, cluster.Options{Name: "web-2", Workers: []*worker.Worker{w, scaled}}))
		synctest.Wait()
		for name, c := range map[string]struct {
			member  string
			command cluster.Command
			want    error
		}{
			"no member":       {"web-9", cluster.Command{Do: cluster.Quiet}, ferry.ErrNotFound},
			"a bad name":      {"web 1", cluster.Command{Do: cluster.Quiet}, ferry.ErrInvalid},
			"no command":      {"web-1", cluster.Command{}, ferry.ErrInvalid},
			"a group alone":   {"web-1", cluster.Command{Do: cluster.Quiet, Group: "g"}, ferry.ErrInvalid},
			"no handlers":     {"web-1", cluster.Command{Do: cluster.Scale}, ferry.ErrInvalid},
			"no message":      {"web-1", cluster.Command{Do: cluster.Cancel, Topic: "orders"}, ferry.ErrInvalid},
			"no such handler": {"web-1", cluster.Command{Do: cluster.Resume, Topic: "mails"}, ferry.ErrNotFound},
			"no such worker":  {"web-1", cluster.Command{Do: cluster.Quiet, Worker: "x"}, ferry.ErrNotFound},
			"which worker":    {"web-2", cluster.Command{Do: cluster.Scale, Concurrency: 3}, ferry.ErrConflict},
			"it scales itself": {"web-2",
				cluster.Command{Do: cluster.Scale, Concurrency: 3, Worker: "scaled"}, ferry.ErrConflict},
			"an old incarnation": {"web-1/abc", cluster.Command{Do: cluster.Quiet}, ferry.ErrNotFound},
		} {
			err := cluster.Tell(context.Background(), b, c.member, c.command)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "hint") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s := w.Stats(); s.Concurrency != 4 || s.Consumers[0].Quiet {
			t.Errorf("what was refused changed something: %+v", s)
		}
	})
}
