package schedule_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/schedule"
)

// Ten thousand ticks fire once each, at their time, with three instances that come and go.
func TestTenThousandTicks(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "tick", Spec: "@every 1s"})
		r.run()
		var want []time.Duration
		for i := 1; i <= 10_000; i++ {
			want = append(want, time.Duration(i)*time.Second)
		}
		for i := range 100 {
			stop := r.run()
			r.pass(time.Duration(i)*100*time.Second + 50*time.Second)
			stop()
			r.pass(time.Duration(i+1) * 100 * time.Second)
		}
		r.expect(want...)
		if n := r.lying(); n != 1 {
			r.Errorf("%d ticks lie there, want the next one", n)
		}
	})
}

// A thousand schedules tick at the same moment: each fires once.
func TestManyAtOnce(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		const n = 1000
		for i := range n {
			r.put(schedule.Schedule{Name: fmt.Sprint(i), Spec: "@hourly"})
		}
		r.run()
		r.run()
		r.pass(2 * time.Hour)
		count := map[string]int{}
		for _, f := range r.fired() {
			count[f.name+" "+f.tick]++
		}
		for key, c := range count {
			if c != 1 {
				r.Errorf("%s fired %d times", key, c)
			}
		}
		if len(count) != 2*n || r.lying() != n {
			r.Errorf("%d fires, %d ticks lie there", len(count), r.lying())
		}
	})
}

// The message comes whole, with headers that name the schedule and its tick, and an id of its own each time.
func TestMessageIsWhole(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		m, err := ferry.NewMessage(t.Context(), r.b, "other", map[string]int{"n": 1}, ferry.Key("k"),
			ferry.Priority(ferry.High), ferry.Header("tenant", "a"),
			ferry.Delay(time.Minute), ferry.TTL(time.Hour), ferry.MaxAttempts(7), ferry.Retry(ferry.Delays(time.Second)))
		r.ok(err)
		r.put(schedule.Schedule{Name: "报表 daily/1", Spec: "@hourly", Message: m})
		r.run()
		sub, err := r.d.Subscribe(r.Context(), driver.SubscribeOptions{Topic: "other", Instance: "x"})
		r.ok(err)
		var ids []string
		for hour := 1; hour <= 2; hour++ {
			ds, err := sub.Receive(r.Context(), 1)
			r.ok(err)
			d := ds[0]
			at := begin.Add(time.Duration(hour) * time.Hour)
			if !d.ClaimedAt.Equal(at.Add(time.Minute)) || string(d.Body) != `{"n":1}` || d.ContentType != "application/json" ||
				d.Key != "k" || d.Priority != ferry.High ||
				d.TTL != time.Hour || d.MaxAttempts != 7 || d.Retry.Delays[0] != time.Second ||
				d.Headers["tenant"] != "a" || d.Headers[schedule.HeaderName] != "报表 daily/1" ||
				d.Headers[schedule.HeaderTick] != at.Format(time.RFC3339) {
				r.Errorf("%+v", d.Message)
			}
			ids = append(ids, d.ID)
			sub.Settle(r.Context(), []driver.Settlement{{Delivery: d}})
		}
		if ids[0] == ids[1] {
			r.Errorf("both have id %s", ids[0])
		}
	})
}

// Jitter makes ticks later, by up to what it says, each by another wait, and in the same order.
func TestJitter(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "spread", Spec: "@every 1m", Jitter: 30 * time.Second})
		r.run()
		r.pass(200*time.Minute + 31*time.Second)
		fires, waits := r.fired(), map[time.Duration]bool{}
		if len(fires) != 200 {
			r.Fatalf("%d fires", len(fires))
		}
		var low, high int
		for i, f := range fires {
			wait := f.at.Sub(begin.Add(time.Duration(i+1) * time.Minute))
			if wait < 0 || wait >= 30*time.Second {
				r.Fatalf("tick %s fired %v later", f.tick, wait)
			}
			waits[wait] = true
			if wait < 10*time.Second {
				low++
			} else if wait > 20*time.Second {
				high++
			}
		}
		if len(waits) < 150 || low < 30 || high < 30 {
			r.Errorf("%d different waits, %d short and %d long ones", len(waits), low, high)
		}
	})
}

// What becomes of the ticks of a time in which nobody ran.
func TestMissed(t *testing.T) {
	minutes := func(from, to int) (all []time.Duration) {
		for m := from; m <= to; m++ {
			all = append(all, time.Duration(m)*time.Minute)
		}
		return all
	}
	for _, c := range []struct {
		missed schedule.Missed
		away   int // minutes, from 2:30 on
		want   []time.Duration
	}{
		{schedule.Once, 10, minutes(3, 3)},
		{"", 10, minutes(3, 3)},
		{schedule.Skip, 10, nil},
		{schedule.All, 10, minutes(3, 12)},
		{schedule.All, 5000, minutes(5002-schedule.MaxMissed+1, 5002)},
	} {
		t.Run(fmt.Sprintf("%s %d", c.missed, c.away), func(t *testing.T) {
			virtual(t, nil, func(r *rig) {
				r.put(schedule.Schedule{Name: "m", Spec: "* * * * *", Missed: c.missed})
				stop := r.run()
				r.pass(2*time.Minute + 30*time.Second)
				r.expect(minutes(1, 2)...)
				stop()
				back := 2*time.Minute + 30*time.Second + time.Duration(c.away)*time.Minute
				r.pass(back)
				r.run()
				r.pass(back)
				r.expectOf(c.want...)
				r.pass(back + 2*time.Minute)
				r.expect(minutes(c.away+3, c.away+4)...)
			})
		})
	}
}

// A tick that is only a little late is none that was missed: it fires, and so does the next.
func TestALittleLate(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "s", Spec: "@every 2s", Missed: schedule.Skip})
		r.run()()
		r.pass(7 * time.Second)
		r.run()
		r.pass(9 * time.Second)
		r.expectOf(2*time.Second, 4*time.Second, 6*time.Second, 8*time.Second)
	})
}

// The one instance that runs leaves three seconds before the tick; another begins later, or is there already.
func TestLeavesBeforeTheTick(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "@hourly"})
		stop := r.run()
		r.pass(time.Hour - 3*time.Second)
		stop()
		r.pass(time.Hour - time.Second)
		other := r.run()
		r.pass(time.Hour)
		r.expect(time.Hour)
		r.run()
		r.pass(2*time.Hour - 3*time.Second)
		other()
		r.pass(2 * time.Hour)
		r.expect(2 * time.Hour)
	})
}

// Every instance declares the schedules when it starts: that changes nothing and fires nothing.
func TestEveryInstanceDeclares(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		declared := []schedule.Schedule{
			{Name: "a", Spec: "*/5 * * * *", Message: message("a")},
			{Name: "b", Spec: "@every 7m", Message: message("b"), Missed: schedule.Once},
			{Name: "once", Spec: "@at 2000-01-01T00:01:00Z", Message: message("once")},
		}
		var first []uint64
		for i := range 30 {
			for k, s := range declared {
				r.put(s)
				if i == 0 {
					first = append(first, r.status(s.Name).Revision)
				} else if st := r.status(s.Name); st.Revision != first[k] {
					r.Fatalf("start %d made revision %d of %s, which had %d", i, st.Revision, s.Name, first[k])
				}
			}
			r.run()
			r.pass(time.Duration(i+1) * 31 * time.Second)
		}
		count := map[string]int{}
		for _, f := range r.fired() {
			count[f.name]++
		}
		if count["a"] != 3 || count["b"] != 2 || count["once"] != 1 {
			r.Errorf("%v", count)
		}
		if st := r.status("once"); st.State != schedule.Ended || !st.Next.IsZero() || !st.Last.Equal(begin.Add(time.Minute)) {
			r.Errorf("%+v", st)
		}
	})
}

// Many instances declare a schedule at the same moment: there is one of it.
func TestPutByManyAtOnce(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		done := make(chan error)
		const n = 40
		for range n {
			s := r.scheduler()
			r.run()
			go func() {
				done <- s.Put(context.Background(), schedule.Schedule{Name: "a", Spec: "@every 10s", Message: message("a")})
			}()
		}
		for range n {
			r.ok(<-done)
		}
		r.pass(30 * time.Second)
		r.expect(10*time.Second, 20*time.Second, 30*time.Second)
		if n := r.lying(); n != 1 {
			r.Errorf("%d ticks lie there", n)
		}
	})
}

// skewed is a broker whose clock is ahead of those of its users.
type skewed struct {
	driver.Driver
	by time.Duration
}

func (s skewed) Publish(ctx context.Context, ms []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	return s.Driver.Publish(ctx, s.moved(ms), o)
}

// moved returns messages due when the clock behind the wrapper shows what the one in front of it has to.
func (s skewed) moved(ms []*driver.Message) []*driver.Message {
	var all []*driver.Message
	for _, m := range ms {
		if m = m.Clone(); !m.At.IsZero() {
			m.At = m.At.Add(-s.by)
		}
		all = append(all, m)
	}
	return all
}

func (s skewed) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	sub, err := s.Driver.Subscribe(ctx, o)
	return skewedSubscription{sub, s}, err
}

func (s skewed) KV() driver.KV { return skewedKV{s.Driver.KV(), s.by} }

type skewedSubscription struct {
	driver.Subscription
	s skewed
}

func (s skewedSubscription) Receive(ctx context.Context, n int) ([]*driver.Delivery, error) {
	ds, err := s.Subscription.Receive(ctx, n)
	for _, d := range ds {
		d.ClaimedAt = d.ClaimedAt.Add(s.s.by)
	}
	return ds, err
}

func (s skewedSubscription) Settle(ctx context.Context, list []driver.Settlement) []error {
	for i := range list {
		list[i].Emit = s.s.moved(list[i].Emit)
	}
	return s.Subscription.Settle(ctx, list)
}

type skewedKV struct {
	driver.KV
	by time.Duration
}

func (k skewedKV) Get(ctx context.Context, bucket string, names ...string) ([]driver.Value, error) {
	vs, err := k.KV.Get(ctx, bucket, names...)
	for i := range vs {
		vs[i].Written = vs[i].Written.Add(k.by)
	}
	return vs, err
}

func (k skewedKV) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	rs := k.KV.Apply(ctx, bucket, o, ws...)
	for i := range rs {
		rs[i].Written = rs[i].Written.Add(k.by)
	}
	return rs
}

// The clocks of members are wrong, by a minute and by a day: the broker's decides when a tick is, which was missed and
// what is past.
func TestOnlyTheBrokersClock(t *testing.T) {
	for _, by := range []time.Duration{time.Minute, -time.Minute, 24 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			virtual(t, func(d driver.Driver) driver.Driver { return skewed{d, by} }, func(r *rig) {
				at := begin.Add(by) // what the broker's clock shows
				r.put(schedule.Schedule{Name: "a", Spec: "@every 10s", Missed: schedule.Skip})
				r.wants(r.s.Put(r.Context(), schedule.Schedule{Name: "b", Spec: "@daily", Until: at, Message: message("b")}),
					ferry.ErrInvalid)
				r.put(schedule.Schedule{Name: "b", Spec: "@at " + at.Add(time.Second).Format(time.RFC3339)})
				r.run()
				r.pass(35 * time.Second)
				var ticks []time.Duration
				for _, f := range r.fired() {
					tick, err := time.Parse(time.RFC3339, f.tick)
					r.ok(err)
					if !f.at.Equal(tick) {
						r.Errorf("%s fired at %s", f.tick, f.at)
					}
					ticks = append(ticks, tick.Sub(at))
				}
				if fmt.Sprint(ticks) != "[1s 10s 20s 30s]" {
					r.Errorf("%v", ticks)
				}
			})
		})
	}
}

// Ferry's own topic is in no count and no verdict.
func TestTopicIsHidden(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s"})
		r.pass(time.Hour) // nobody runs: the tick is an hour overdue
		m, err := monitor.New(r.b, monitor.Options{})
		r.ok(err)
		if text := fmt.Sprintf("%+v", m.Look(r.Context())); strings.Contains(text, schedule.Topic) {
			r.Errorf("the snapshot contains the topic: %s", text)
		}
		_, err = r.b.Publish(r.Context(), &ferry.Message{Topic: schedule.Topic})
		r.wants(err, ferry.ErrInvalid)
		synctest.Wait()
	})
}

// However far the clocks of members are apart: nothing in the package asks for the time of its own machine.
func TestReadsNoClock(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if p, ok := s.X.(*ast.Ident); ok && p.Name == "time" &&
				slices.Contains([]string{"Now", "Since", "Until"}, s.Sel.Name) {
				t.Errorf("%v: time.%s", set.Position(s.Pos()), s.Sel.Name)
			}
			return true
		})
	}
}
