package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestKeepMost: of settled messages the newest stay, as many as were asked for, also when fewer are asked for later,
// and also after the store was opened again.
func TestKeepMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		store := newMapStore()
		e := New(storeOptions(store, 4))
		c := driver.TopicConfig{Keep: time.Hour, KeepMost: 5}
		if err := e.EnsureTopic(ctx, "t", c); err != nil {
			t.Fatal(err)
		}
		s := subscribe(t, e, driver.SubscribeOptions{})
		for i := range 12 {
			publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i)})
			ds, err := s.Receive(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			settle(t, s, driver.Ack, 0, ds...)
		}
		kept(t, e, "[7 8 9 10 11]")
		c.KeepMost = 2
		if err := e.AlterTopic(ctx, "t", c); err != nil {
			t.Fatal(err)
		}
		kept(t, e, "[10 11]")
		if err := e.Close(ctx); err != nil {
			t.Fatal(err)
		}
		e = New(storeOptions(store, 4))
		if err := e.Restore(ctx, nil); err != nil {
			t.Fatal(err)
		}
		kept(t, e, "[10 11]")
		if infos, _ := e.Topics(ctx); infos[0].Config != c {
			t.Errorf("the topic is configured as %+v, want %+v", infos[0].Config, c)
		}
		time.Sleep(2 * time.Hour)
		kept(t, e, "[]")
		if err := e.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// kept compares the settled messages that are there.
func kept(t *testing.T, e *Engine, want string) {
	t.Helper()
	page, err := e.Browse(context.Background(), driver.Query{Topic: "t", Group: driver.DefaultGroup,
		State: driver.StateDone})
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, en := range page.Entries {
		ids = append(ids, en.ID)
	}
	if got := fmt.Sprint(ids); got != want {
		t.Errorf("%s are kept, want %s", got, want)
	}
}
