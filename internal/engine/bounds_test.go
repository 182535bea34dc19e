package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestAllTopicsAreBoundedTogether fills the engine with dead letters of one topic; another topic is full then, and
// what relieves it works.
func TestAllTopicsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	e := open(t)
	e.o.MaxMessages = 3
	s := subscribe(t, e, driver.SubscribeOptions{})
	publish(t, e, msg("t", "1"), msg("t", "2"))
	settle(t, s, driver.Dead, 0, take(t, s, 2)...)
	rs, err := e.Publish(context.Background(), []*driver.Message{msg("u", "3"), msg("u", "4")}, driver.PublishOptions{})
	if rs[0].Err != nil || !errors.Is(rs[1].Err, driver.ErrFull) || !errors.Is(err, driver.ErrFull) {
		t.Errorf("receipts %+v, error %v: want the second one full", rs, err)
	}
	if _, err := e.Publish(context.Background(), []*driver.Message{msg("u", "5")},
		driver.PublishOptions{}); !errors.Is(err, driver.ErrFull) {
		t.Errorf("single publish: %v, want ErrFull", err)
	}
	u := subscribe(t, e, driver.SubscribeOptions{Topic: "u"})
	d := take(t, u, 1)
	emit := driver.Settlement{Delivery: d[0], Outcome: driver.Release, Emit: []*driver.Message{msg("u", "6")}}
	if err := u.Settle(context.Background(), []driver.Settlement{emit})[0]; err != nil {
		t.Errorf("a bound refused an emit: %v", err)
	}
	if err := errors.Join(e.Delete(context.Background(), []driver.Target{{Topic: "t", ID: "1"},
		{Topic: "t", ID: "2"}})...); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Publish(context.Background(), []*driver.Message{msg("u", "7"), msg("t", "8")},
		driver.PublishOptions{Atomic: true}); !errors.Is(err, driver.ErrFull) {
		t.Errorf("atomic publish of two where one fits: %v, want ErrFull", err)
	}
	publish(t, e, msg("u", "9"))
}

func msg(topic, id string) *driver.Message { return &driver.Message{Topic: topic, ID: id} }

// TestRememberedIDsAreBounded: own ids are forgotten oldest first; dedup ids never before their window ends.
func TestRememberedIDsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t)
		s := subscribe(t, e, driver.SubscribeOptions{})
		for i := range e.o.MaxIDs + 10 {
			publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i), OwnID: true})
			settle(t, s, driver.Ack, 0, take(t, s, 1)...)
		}
		known := &topicOf(e, "t").ownIDs
		if n := known.ids.Len(); n != e.o.MaxIDs || known.until.Len()+len(known.next) != n {
			t.Errorf("%d own ids are remembered, want %d", n, e.o.MaxIDs)
		}
		dedup := func(i int) error {
			m := msg("t", fmt.Sprint("d", i))
			m.DedupID, m.DedupWindow = m.ID, time.Minute
			_, err := e.Publish(context.Background(), []*driver.Message{m}, driver.PublishOptions{})
			return err
		}
		for i := range e.o.MaxDedup {
			if err := dedup(i); err != nil {
				t.Fatal(err)
			}
		}
		if err := dedup(-1); !errors.Is(err, driver.ErrFull) {
			t.Errorf("one dedup id too many: %v, want ErrFull", err)
		}
		time.Sleep(time.Minute)
		if err := dedup(-1); err != nil {
			t.Errorf("after the window: %v", err)
		}
		if n := known.ids.Len(); n != 0 {
			t.Errorf("%d own ids are remembered after their window", n)
		}
	})
}

// TestBadInputIsRefused: what would damage an index never reaches it.
func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	e := open(t)
	for what, m := range map[string]*driver.Message{
		"no id": msg("t", ""), "priority": {Topic: "t", ID: "1", Priority: 9}, "topic": msg("a b", "1"),
		"body": {Topic: "t", ID: "1", Body: make([]byte, e.o.Capabilities.MaxBody+1)},
	} {
		for _, batch := range [][]*driver.Message{{m}, {m, m}} {
			for _, atomic := range []bool{false, true} {
				rs, err := e.Publish(context.Background(), batch, driver.PublishOptions{Atomic: atomic})
				if err == nil || rs[0].Err == nil || errors.Is(err, driver.ErrInvalid) == (what == "body") {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	}
	if _, err := e.Publish(context.Background(), []*driver.Message{msg("t", "1")},
		driver.PublishOptions{Level: driver.Synced}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("level: %v, want ErrUnsupported", err)
	}
}

// TestAnyScheduleArrivesWhole: times that nanoseconds cannot express come back as they were.
func TestAnyScheduleArrivesWhole(t *testing.T) {
	t.Parallel()
	e := open(t)
	s := subscribe(t, e, driver.SubscribeOptions{})
	for i, at := range []time.Time{time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC), time.Date(2020, 1, 1, 0, 0, 0, 7, time.UTC)} {
		publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i), At: at})
		if d := take(t, s, 1); len(d) != 1 || !d[0].At.Equal(at) {
			t.Errorf("published at %v, got %v", at, d)
		}
	}
	far := time.Date(2262, 4, 10, 0, 0, 0, 0, time.UTC)
	publish(t, e, &driver.Message{Topic: "t", ID: "far", At: far})
	es, err := e.Get(context.Background(), driver.Target{Topic: "t", ID: "far"})
	if err != nil || es[0].State != driver.StateDelayed || !es[0].At.Equal(far) {
		t.Errorf("got %+v, %v", es, err)
	}
}

// TestClosedEngineRefusesEverything: also what holds deliveries.
func TestClosedEngineRefusesEverything(t *testing.T) {
	t.Parallel()
	e := New(testOptions())
	s := subscribe(t, e, driver.SubscribeOptions{})
	publish(t, e, msg("t", "1"))
	ds := take(t, s, 1)
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for what, err := range map[string]error{
		"settle": s.Settle(ctx, []driver.Settlement{{Delivery: ds[0]}})[0],
		"emit":   s.Settle(ctx, []driver.Settlement{{Delivery: ds[0], Emit: []*driver.Message{msg("t", "2")}}})[0],
		"extend": s.Extend(ctx, ds)[0], "move": e.Move(ctx, []driver.Move{{Target: driver.Target{Topic: "t", ID: "1"}}})[0],
		"raw": e.StoreRaw(ctx, "new", nil), "pause": e.Pause(ctx, "t", "", true),
	} {
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", what, err)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Errorf("Close of a subscription after its engine: %v", err)
	}
}
