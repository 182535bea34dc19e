package unique_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/worker"
)

// An id is taken until its message is settled, however often that is tried, and free after it, whichever way it ends.
// Ids of other topics are others.
func TestTakenUntilSettled(t *testing.T) {
	for _, c := range []struct {
		name string
		end  error
	}{{"ack", nil}, {"dead", worker.Fatal(errBilling)}, {"drop", worker.Drop(nil)}} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				r.work("default", func(_ context.Context, d *ferry.Delivery) error {
					if d.Attempt < 3 {
						return errBilling
					}
					return c.end
				}, worker.Retry(ferry.Delays(time.Minute)))
				first := r.accepted()
				if _, err := ferry.Publish(r.ctx, r.broker, "mails", []byte("x"), ferry.Unique("r1", time.Hour)); err != nil {
					t.Errorf("in another topic: %v", err)
				}
				r.refused(first)
				pause(90 * time.Second) // two attempts have failed
				r.refused(first)
				pause(time.Minute)
				if n := r.values(); n != 1 { // of the other topic
					t.Errorf("%d values are left", n)
				}
				r.refused(r.accepted())
			})
		})
	}
}

// While one group has not settled it the id is taken, whoever is faster.
func TestEveryGroupCounts(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var first string
		for _, slow := range []string{"billing", "shipping"} {
			var stops []func()
			for _, g := range []string{"billing", "shipping"} {
				stops = append(stops, r.work(g, func(context.Context, *ferry.Delivery) error {
					if g == slow {
						time.Sleep(time.Minute)
					}
					return nil
				}))
			}
			first = r.accepted()
			pause(30 * time.Second)
			r.refused(first)
			pause(time.Minute)
			if n := r.values(); n != 0 {
				t.Errorf("%d values are left", n)
			}
			for _, stop := range stops {
				stop()
			}
		}
	})
}

// What ends without a worker is noticed by who wants the id next.
func TestEndsWithoutAWorker(t *testing.T) {
	for name, end := range map[string]func(r *rig, id string) error{
		"expired": func(*rig, string) error { time.Sleep(time.Minute); return nil },
		"removed": func(r *rig, id string) error {
			return r.broker.Driver().Delete(r.ctx, []driver.Target{{Topic: topic, ID: id}})[0]
		},
		"purged": func(r *rig, _ string) error {
			_, err := r.broker.Driver().Purge(r.ctx, topic, "default")
			return err
		},
		"topic deleted": func(r *rig, _ string) error { return r.broker.Driver().DeleteTopic(r.ctx, topic) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				first := r.accepted(ferry.TTL(time.Minute))
				pause(time.Second)
				r.refused(first)
				if err := end(r, first); err != nil {
					t.Fatal(err)
				}
				r.refused(r.accepted())
			})
		})
	}
}

// A message that is not there yet is not taken for one that is gone: its publisher may be about to store it.
func TestNotYetStored(t *testing.T) {
	virtual(t, func(_ *testing.T, r *rig) {
		goOn := make(chan struct{})
		done := make(chan string)
		r.driver.Set(faulty.Publish, func(context.Context, faulty.Call, func()) error { <-goOn; return nil })
		go func() {
			receipt, _ := r.publish(ferry.ID("slow"))
			done <- receipt.ID
		}()
		pause(10 * time.Minute)
		r.refused("slow")
		r.driver.Set(faulty.Publish, nil)
		close(goOn)
		r.refused(<-done)
	})
}

// A publish that was certainly not applied frees its id at once; one of which nobody knows keeps it, and goes on under
// the same message id.
func TestPublishThatFailed(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.driver.Set(faulty.Publish, faulty.Once(faulty.Fail(ferry.ErrNotApplied)))
		if _, err := r.publish(); !errors.Is(err, ferry.ErrNotApplied) {
			t.Fatal(err)
		}
		if n := r.values(); n != 0 {
			t.Errorf("%d values are left", n)
		}
		r.driver.Set(faulty.Publish, faulty.Once(faulty.Lose(ferry.ErrUnknown)))
		receipt, err := r.publish()
		if !errors.Is(err, ferry.ErrUnknown) {
			t.Fatal(err)
		}
		r.refused(receipt.ID)
		again, err := r.publish(ferry.ID(receipt.ID))
		if err != nil || again.ID != receipt.ID {
			t.Errorf("the same once more: %+v, %v", again, err)
		}
		r.refused(receipt.ID)
		r.work("default", func(context.Context, *ferry.Delivery) error { return nil })
		pause(time.Second)
		r.accepted()
	})
}

// A message that a spool keeps for a broker that is away is not there, and is not gone.
func TestSpooled(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r = newRig(t, faulty.New(spooling{r.driver}))
		first := r.accepted()
		pause(time.Minute)
		r.refused(first)
	})
}

type spooling struct{ driver.Driver }

func (spooling) Publish(_ context.Context, ms []*driver.Message, _ driver.PublishOptions) ([]driver.Receipt, error) {
	return []driver.Receipt{{ID: ms[0].ID, Spooled: true}}, nil
}

// A claim whose answer is lost is not taken for another's.
func TestLostAnswerOfAClaim(t *testing.T) {
	virtual(t, func(_ *testing.T, r *rig) {
		r.driver.Set(faulty.Write, faulty.Once(faulty.Lose(ferry.ErrUnknown)))
		r.refused(r.accepted())
	})
}

// Others are faster again and again: whoever wants the id gets it in the end, or hears that it did not, and then no
// value of its own keeps everybody from it.
func TestFasterOthers(t *testing.T) {
	for faster := range 8 {
		for name, answer := range map[string]faulty.Fault{
			"": nil, ", then its answer is lost": faulty.Lose(ferry.ErrUnknown),
		} {
			t.Run(fmt.Sprint(faster, name), func(t *testing.T) {
				virtual(t, func(t *testing.T, r *rig) {
					r.driver.Set(faulty.Write, contended(t, r, faster, answer))
					id, err := r.publish()
					r.driver.Set(faulty.Write, nil)
					switch {
					case err == nil:
						r.refused(id.ID)
					case faster < 4 || !errors.Is(err, ferry.ErrNotApplied):
						t.Fatal(err)
					default:
						r.accepted()
					}
				})
			})
		}
	}
}

// contended lets others have an id first, so many times, whose messages are gone at once. What comes of the claim after
// that the answer says.
func contended(t *testing.T, r *rig, faster int, answer faulty.Fault) faulty.Fault {
	claims := 0
	return func(ctx context.Context, c faulty.Call, do func()) error {
		if c.Write.If != driver.Absent {
			return nil
		}
		claims++
		switch {
		case claims <= faster:
			other := driver.Write{Name: c.Write.Name, Data: fmt.Appendf(nil, `{"id":"other%d","stored":true}`, claims)}
			if err := r.driver.Driver.KV().Apply(ctx, c.Bucket, driver.KVOptions{}, other)[0].Err; err != nil {
				t.Error(err)
			}
		case claims == faster+1 && answer != nil:
			return answer(ctx, c, do)
		}
		return nil
	}
}

// A value that nobody removed ends with its time; and who settles the old message after that does not remove the value
// of the new one.
func TestLateSettlementHarmsNobody(t *testing.T) {
	virtual(t, func(_ *testing.T, r *rig) {
		begun := make(chan string, 2)
		goOn := make(chan struct{})
		r.work("default", func(_ context.Context, d *ferry.Delivery) error {
			begun <- d.ID
			<-goOn
			return nil
		})
		first := r.accepted(ferry.Unique("r1", time.Minute))
		if id := <-begun; id != first {
			r.t.Fatal(id)
		}
		pause(59 * time.Second)
		r.refused(first)
		pause(2 * time.Second)
		second := r.accepted()
		<-begun
		goOn <- struct{}{} // one of both
		pause(time.Second)
		if n := r.values(); n != 1 {
			r.t.Errorf("%d values after the settlement of one", n)
		}
		_ = second
		goOn <- struct{}{}
		pause(time.Second)
		if n := r.values(); n != 0 {
			r.t.Errorf("%d values are left", n)
		}
	})
}

// A value that a killed process left behind is taken over under a new epoch: what comes late for the old message
// removes nothing.
func TestTakenOverIsAnothers(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.driver.Set(faulty.Write, func(_ context.Context, c faulty.Call, _ func()) error {
			if c.Write.Delete && c.Write.If == 0 {
				return ferry.ErrNotApplied // the removal does not come through for a time
			}
			return nil
		})
		stop := r.work("default", func(context.Context, *ferry.Delivery) error { return nil })
		r.accepted()
		pause(100 * time.Millisecond)
		if err := r.broker.Driver().Pause(r.ctx, topic, "default", true); err != nil {
			t.Fatal(err)
		}
		second := r.accepted() // the first one is gone, as the broker says
		r.driver.Set(faulty.Write, nil)
		pause(time.Minute) // the removal of the first value is tried again
		r.refused(second)
		stop()
	})
}

// Each message of a batch has its own id; what is taken is refused, and the others go through. An atomic batch is
// stored whole or not at all.
func TestBatch(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		first := r.accepted()
		batch := func() (ms []*ferry.Message) {
			for _, id := range []string{"a", "r1", "b", "a", ""} {
				var opts []ferry.PublishOption
				if id != "" {
					opts = append(opts, ferry.Unique(id, time.Hour))
				}
				m, err := ferry.NewMessage(r.ctx, r.broker, topic, []byte(id), opts...)
				if err != nil {
					t.Fatal(err)
				}
				ms = append(ms, m)
			}
			return ms
		}
		rs, err := r.broker.PublishBatch(r.ctx, batch(), ferry.Atomic())
		if !errors.Is(err, ferry.ErrConflict) || len(rs) != 5 || !errors.Is(rs[0].Err, ferry.ErrNotApplied) ||
			!errors.Is(rs[4].Err, ferry.ErrNotApplied) {
			t.Errorf("atomic: %+v, %v", rs, err)
		}
		if n := r.values(); n != 1 {
			t.Errorf("%d values after a batch that was not sent", n)
		}
		rs, err = r.broker.PublishBatch(r.ctx, batch())
		if !errors.Is(err, ferry.ErrConflict) || len(rs) != 5 || rs[0].Err != nil || rs[2].Err != nil || rs[4].Err != nil {
			t.Fatalf("%+v, %v", rs, err)
		}
		if !errors.Is(rs[1].Err, ferry.ErrConflict) || rs[1].ID != first || !errors.Is(rs[3].Err, ferry.ErrConflict) ||
			rs[3].ID != rs[0].ID {
			t.Errorf("%+v", rs)
		}
		if _, err := r.broker.PublishBatch(r.ctx, batch()[:2],
			ferry.Unique("c", time.Hour)); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("one id for a batch: %v", err)
		}
	})
}

// A broker that is gone in the middle of a batch costs its publisher seconds, not seconds for each message. What could
// not be undone is tried again.
func TestBatchIsUndoneAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.driver.Set(faulty.Publish, faulty.Fail(ferry.ErrNotApplied))
		r.driver.Set(faulty.Write, func(ctx context.Context, c faulty.Call, _ func()) error {
			if !c.Write.Delete {
				return nil
			}
			<-ctx.Done()
			return ferry.ErrNotApplied
		})
		var ms []*ferry.Message
		for i := range 200 {
			m, err := ferry.NewMessage(r.ctx, r.broker, topic, []byte("x"), ferry.Unique(fmt.Sprint(i), time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			ms = append(ms, m)
		}
		begin := time.Now()
		if _, err := r.broker.PublishBatch(r.ctx, ms); !errors.Is(err, ferry.ErrNotApplied) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		r.driver.Set(faulty.Publish, nil)
		r.driver.Set(faulty.Write, nil)
		pause(time.Minute)
		if n := r.values(); n != 0 {
			t.Errorf("%d values are left", n)
		}
	})
}

// Asynchronous publishes are told by their receipts.
func TestAsync(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var futures []*ferry.Future
		for range 3 {
			f, err := r.broker.PublishAsync(r.ctx, &ferry.Message{Topic: topic, Body: []byte("x")},
				ferry.Unique("r1", time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			futures = append(futures, f)
		}
		first, err := futures[0].Wait(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range futures[1:] {
			if receipt, err := f.Wait(r.ctx); !errors.Is(err, ferry.ErrConflict) || receipt.ID != first.ID {
				t.Errorf("%+v, %v", receipt, err)
			}
		}
		r.refused(first.ID)
	})
}

func TestInvalid(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		for name, opts := range map[string][]ferry.PublishOption{
			"no id":          {ferry.Unique("", time.Hour)},
			"long id":        {ferry.Unique(strings.Repeat("x", 200), time.Hour)},
			"no time":        {ferry.Unique("r1", 0)},
			"a delay":        {ferry.Delay(2 * time.Hour)},
			"a time":         {ferry.At(time.Now().Add(2 * time.Hour))},
			"a broken level": {ferry.Level(ferry.Synced)},
		} {
			if _, err := r.publish(opts...); !errors.Is(err, ferry.ErrInvalid) && !errors.Is(err, ferry.ErrUnsupported) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := r.values(); n != 0 {
			t.Errorf("%d values", n)
		}
	})
}
