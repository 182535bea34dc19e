package admin

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

const tailPath = api.Base + "/topics/" + topic + "/tail"

// tailing watches the topic for a minute while something happens, and returns the events.
func (r *rig) tailing(happens func()) []string {
	r.Helper()
	got := make(chan string, 1)
	go func() { got <- r.do("GET", tailPath, "", nil).Body.String() }()
	synctest.Wait() // it watches
	happens()
	return events(<-got)
}

// handle handles n messages.
func (r *rig) handle(n int) {
	r.Helper()
	s, err := r.broker.Driver().Subscribe(r.Context(), driver.SubscribeOptions{Topic: topic, Group: "default",
		Instance: "w"})
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = s.Close(context.WithoutCancel(r.Context())) }()
	for n > 0 {
		ds, err := s.Receive(r.Context(), n)
		if err != nil {
			r.Fatal(err)
		}
		n -= len(ds)
		for _, d := range ds {
			if err := s.Settle(r.Context(), []driver.Settlement{{Delivery: d, Outcome: driver.Ack}})[0]; err != nil {
				r.Fatal(err)
			}
		}
	}
}

// TestTail: a viewer sees what comes after it began, and is told how much it does not see.
func TestTail(t *testing.T) {
	virtual(t, Options{Masks: []Mask{{Fields: []string{"card"}}}}, func(r *rig) {
		r.publish(1) // before
		got := r.tailing(func() {
			r.publish(2)
			time.Sleep(time.Second + tailEvery/2) // between two looks
			r.publish(2)
			r.handle(4) // all but the last, before they are looked at
			time.Sleep(time.Second)
			r.publish(tailMost + 7)
		})
		if n := countOf(got, "message"); n != 2+1+tailMost {
			t.Errorf("%d messages, want those that came and were there: %s", n, got)
		}
		if !strings.Contains(got[0], `{\"card\":\"***\",\"n\":0}`) || !strings.Contains(got[1], `\"n\":1`) {
			t.Errorf("the first are %s", got[:2])
		}
		if got[2] != "event: skipped\ndata: {\"count\":1}" || got[4] != "event: skipped\ndata: {\"count\":7}" {
			t.Errorf("what is told of the others: %s", got[:5])
		}
		if last := got[len(got)-1]; last != ": alive" {
			t.Errorf("while nothing comes it shows %q", last)
		}
	})
}

func countOf(events []string, name string) (n int) {
	for _, e := range events {
		if strings.HasPrefix(e, "event: "+name+"\n") {
			n++
		}
	}
	return n
}

// TestTailHidesPayload: each viewer sees what it may, of the same look.
func TestTailHidesPayload(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		viewer := r.as(auth.Grant{Role: auth.Viewer})
		seen := make(chan []string, 1)
		go func() { seen <- events(viewer.do("GET", tailPath, "", nil).Body.String()) }()
		whole := r.tailing(func() { r.publish(1) })
		hidden := <-seen
		if !strings.Contains(whole[0], "4111") || strings.Contains(hidden[0], "4111") ||
			!strings.Contains(hidden[0], `"hidden":true`) {
			t.Errorf("an operator sees %s, a viewer %s", whole[0], hidden[0])
		}
		r.as(auth.Grant{Role: auth.Operator, Topics: []string{"mails"}}).refused(http.StatusForbidden, "GET", tailPath, nil)
	})
}

// following counts how often a broker is asked what came.
type following struct {
	driver.Driver
	asked atomic.Int64
	fails atomic.Bool
}

func (f *following) Follow(ctx context.Context, q driver.FollowQuery) (driver.FollowPage, error) {
	f.asked.Add(1)
	if f.fails.Load() {
		return driver.FollowPage{}, driver.NewError(driver.ErrNotApplied, "the broker is away", "wait", nil)
	}
	return driver.FollowerOf(f.Driver).Follow(ctx, q)
}

// on runs a test with an API on a driver around one in memory.
func on(t *testing.T, wrap func(driver.Driver) driver.Driver, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(t.Context(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := ferry.New(wrap(inner), ferry.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.Close(context.Background()) }()
		if err := b.Driver().EnsureGroup(t.Context(), topic, "default", ferry.GroupOptions{}); err != nil {
			t.Fatal(err)
		}
		a, err := New(Options{Broker: b})
		if err != nil {
			t.Fatal(err)
		}
		test(&rig{T: t, broker: b, api: a, who: boss})
	})
}

// TestTailIsShared: many viewers of a topic cost the broker as much as one, and none costs nothing.
func TestTailIsShared(t *testing.T) {
	f := &following{}
	on(t, func(d driver.Driver) driver.Driver { f.Driver = d; return f }, func(r *rig) {
		const viewers = 20
		got := make(chan []string, viewers)
		for range viewers {
			go func() { got <- events(r.do("GET", tailPath, "", nil).Body.String()) }()
		}
		synctest.Wait()
		r.publish(3)
		for range viewers {
			if seen := <-got; countOf(seen, "message") != 3 {
				t.Errorf("a viewer saw %s", seen)
			}
		}
		looks := int64(time.Minute / tailEvery)
		if n := f.asked.Load(); n < looks-1 || n > looks+viewers { // each may have asked where the topic ends
			t.Errorf("the broker was asked %d times in a minute, want about %d", n, looks)
		}
		before := f.asked.Load()
		time.Sleep(time.Hour)
		if n := f.asked.Load() - before; n != 0 || len(r.api.tails.of) != 0 {
			t.Errorf("nobody watches, and the broker was asked %d times", n)
		}
	})
}

// TestTailEnds: a look that fails ends the streams so that clients see it, and who comes later begins anew.
func TestTailEnds(t *testing.T) {
	f := &following{}
	on(t, func(d driver.Driver) driver.Driver { f.Driver = d; return f }, func(r *rig) {
		broken := make(chan any, 1)
		go func() {
			defer func() { broken <- recover() }()
			r.do("GET", tailPath, "", nil)
		}()
		synctest.Wait()
		f.fails.Store(true)
		if v := <-broken; v != http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
			t.Errorf("the stream ended with %v", v)
		}
		r.refused(http.StatusServiceUnavailable, "GET", tailPath, nil)
		f.fails.Store(false)
		if got := r.tailing(func() { r.publish(1) }); countOf(got, "message") != 1 {
			t.Errorf("who came later saw %s", got)
		}
		r.refused(http.StatusNotFound, "GET", api.Base+"/topics/none/tail", nil)
	})
}

// bare is a driver that hides what is optional.
type bare struct{ driver.Driver }

// TestNoTail: a broker that can neither be followed nor has a log says so.
func TestNoTail(t *testing.T) {
	on(t, func(d driver.Driver) driver.Driver { return bare{d} }, func(r *rig) {
		p := r.refused(http.StatusNotImplemented, "GET", tailPath, nil)
		if p.Code != api.CodeUnsupported || p.Hint == "" {
			t.Errorf("%+v", p)
		}
		var b api.Broker
		if r.get(api.Base+"/broker", &b); b.Tail {
			t.Error("the broker says that it has a tail")
		}
	})
}

// TestSlowViewer: who does not take what comes is told how much it missed, once there is room again.
func TestSlowViewer(t *testing.T) {
	t.Parallel()
	v := &viewer{looks: make(chan look, 1)}
	three := look{entries: make([]driver.Entry, 3), skipped: api.Skipped{Count: 2}}
	v.give(three)
	v.give(three)
	v.give(look{entries: make([]driver.Entry, 1), skipped: api.Skipped{More: true}})
	if l := <-v.looks; len(l.entries) != 3 || l.skipped != (api.Skipped{Count: 2}) {
		t.Errorf("the first look is %+v", l)
	}
	v.give(three)
	if l := <-v.looks; len(l.entries) != 3 || l.skipped != (api.Skipped{Count: 2 + 5 + 1, More: true}) {
		t.Errorf("the next look says that %+v was skipped", l.skipped)
	}
	v.give(three)
	if l := <-v.looks; l.skipped != (api.Skipped{Count: 2}) {
		t.Errorf("what was told is told again: %+v", l.skipped)
	}
}

// partition is a log of one partition whose messages a test puts there.
type partition struct {
	driver.Log
	entries []driver.Entry
}

func (p *partition) add(n int) {
	for range n {
		pos := uint64(len(p.entries) + 1)
		p.entries = append(p.entries, driver.Entry{Message: &driver.Message{ID: fmt.Sprint(pos)}, Ref: driver.Ref{Pos: pos}})
	}
}

func (p *partition) Partitions(context.Context, string) ([]driver.Partition, error) {
	one := driver.Partition{}
	if n := len(p.entries); n > 0 {
		one.Last = p.entries[n-1].Ref
	}
	return []driver.Partition{one}, nil
}

func (p *partition) Range(_ context.Context, q driver.RangeQuery) (page driver.RangePage, err error) {
	from := max(1, q.From.Ref.Pos)
	for _, e := range p.entries[from-1:] {
		if len(page.Entries) == q.Limit {
			page.Next = e.Ref
			break
		}
		page.Entries = append(page.Entries, e)
	}
	return page, nil
}

// TestTailOfALog: what is beyond a look is skipped, so that the tail does not fall behind.
func TestTailOfALog(t *testing.T) {
	t.Parallel()
	p := &partition{}
	tailer := &logTailer{log: p, topic: topic}
	if err := tailer.toEnd(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		come, seen int
		more       bool
	}{{0, 0, false}, {2, 2, false}, {3, 3, false}, {tailMost + 9, tailMost - 1, true}, {1, 1, false}} {
		p.add(step.come)
		l, err := tailer.next(t.Context())
		if err != nil || len(l.entries) != step.seen || l.skipped.More != step.more {
			t.Errorf("of %d that came %d are shown, more: %t, %v", step.come, len(l.entries), l.skipped.More, err)
		}
	}
}
