package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// contend lets processes change the same message at the same time: the first ones delete it, the others move it.
func contend(t *testing.T, ds []*kafka.Driver, to driver.Target, deleters int) (moved, deleted int) {
	t.Helper()
	errs := make([]error, len(ds))
	var all sync.WaitGroup
	start := make(chan struct{})
	for i, d := range ds {
		all.Go(func() {
			<-start
			if i < deleters {
				errs[i] = d.Delete(t.Context(), []driver.Target{to})[0]
				return
			}
			move := driver.Move{Target: to, Edit: &driver.Message{Body: []byte{byte(i)}}}
			errs[i] = d.Move(t.Context(), []driver.Move{move})[0]
		})
	}
	close(start)
	all.Wait()
	for i, err := range errs {
		switch {
		case err == nil && i < deleters:
			deleted++
		case err == nil:
			moved++
		case i >= deleters && to.Group == "" && errors.Is(err, driver.ErrInvalid): // another one has moved it to its groups
		case !errors.Is(err, driver.ErrNotFound) && !errors.Is(err, driver.ErrConflict):
			t.Errorf("contender %d: %v", i, err)
		}
	}
	return moved, deleted
}

// planting makes a message that somebody may move or delete without asking an owner, and returns what it is called.
type planting func(t *testing.T, d *kafka.Driver, s driver.Subscription, id string) driver.Target

// plants are all states in which a message has no owner.
func plants() map[string]planting {
	return map[string]planting{
		"dead": func(t *testing.T, d *kafka.Driver, s driver.Subscription, id string) driver.Target {
			publish(t, d, message(id, "k"))
			settle(t, s, receive(t, s), driver.Dead, 0)
			to := target(id)
			to.Death = 1 // not what comes of its replay
			return to
		},
		"held": func(t *testing.T, d *kafka.Driver, _ driver.Subscription, id string) driver.Target {
			m := message(id, "k")
			m.Delay = driver.Hold
			publish(t, d, m)
			return driver.Target{Topic: "orders", ID: id}
		},
		"delayed": func(t *testing.T, d *kafka.Driver, _ driver.Subscription, id string) driver.Target {
			m := message(id, "k")
			m.Delay = time.Hour
			publish(t, d, m)
			return driver.Target{Topic: "orders", ID: id}
		},
		"invalid": func(t *testing.T, d *kafka.Driver, _ driver.Subscription, id string) driver.Target {
			if err := d.StoreRaw(t.Context(), "orders", []byte(id)); err != nil {
				t.Fatal(err)
			}
			for {
				page, err := d.Browse(t.Context(), driver.Query{Topic: "orders", State: driver.StateInvalid})
				if err != nil {
					t.Fatal(err)
				}
				if n := len(page.Entries); n > 0 && string(page.Entries[n-1].Raw) == id {
					return driver.Target{Topic: "orders", Ref: page.Entries[n-1].Ref}
				}
			}
		},
	}
}

// TestOneOfManyMayChange: of processes that delete or move the same message at the same time exactly one hears that it
// did, and what it did is what is seen.
func TestOneOfManyMayChange(t *testing.T) {
	t.Parallel()
	for name, plant := range plants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake(t)
			takeTurns(t, openFake(t, c), c.ListenAddrs(), name, plant)
		})
		t.Run(name+" on Kafka", func(t *testing.T) {
			t.Parallel()
			c := kafkatest.Shared(t)
			d := open(t, c, "c"+rand.Text()[:8]+".")
			t.Cleanup(func() { end(t, d) })
			takeTurns(t, d, c.Addrs(), name, plant)
		})
	}
}

func takeTurns(t *testing.T, d *kafka.Driver, brokers []string, name string, plant planting) {
	t.Helper()
	publish(t, d, message("first", "k"))
	ds := []*kafka.Driver{d, again(t, d, brokers), again(t, d, brokers)}
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	for i := range 6 {
		to := plant(t, d, s, fmt.Sprint("m", i))
		deleters := 1 + i%2
		if name == "held" || name == "delayed" { // what is ready after a move can be deleted, but not moved
			deleters = 3 * (i % 2)
		}
		moved, deleted := contend(t, ds, to, deleters)
		if moved+deleted != 1 {
			t.Fatalf("%d moved it and %d deleted it", moved, deleted)
		}
		if moved == 1 {
			settle(t, s, receive(t, s), driver.Ack, 0)
		}
		if _, err := d.Get(t.Context(), to); !errors.Is(err, driver.ErrNotFound) {
			t.Errorf("it can still be found: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if ds, err := s.Receive(ctx, 1); err == nil {
		t.Errorf("%s was delivered again, or although it was deleted", ds[0].ID)
	}
}

// TestLetterOfALaterRound: the end of a dead letter that was replayed is not the end of the one that came of the
// replay.
func TestLetterOfALaterRound(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	s := subscribe(t, d, "x")
	publish(t, d, message("m", "k"))
	settle(t, s, receive(t, s), driver.Dead, 0)
	first := target("m")
	first.Death = 1
	for round := 1; round <= 3; round++ {
		if err := d.Move(t.Context(), []driver.Move{{Target: target("m")}})[0]; err != nil {
			t.Fatal(err)
		}
		settle(t, s, receive(t, s), driver.Dead, 0)
		for _, look := range []*kafka.Driver{d, again(t, d, c.ListenAddrs())} {
			es, err := look.Get(t.Context(), target("m"))
			// the owner has not committed yet, maybe
			if err != nil || len(es) == 0 || es[len(es)-1].Dead == nil || es[len(es)-1].Dead.Rounds != round {
				t.Fatalf("round %d: %+v, %v", round, es, err)
			}
			if err := look.Delete(t.Context(), []driver.Target{first})[0]; !errors.Is(err, driver.ErrConflict) {
				t.Errorf("round %d: the first death was deleted again: %v", round, err)
			}
		}
	}
	if err := d.Delete(t.Context(), []driver.Target{target("m")})[0]; err != nil {
		t.Fatal(err)
	}
	if page, err := again(t, d, c.ListenAddrs()).Browse(t.Context(), driver.Query{Topic: "orders",
		Group: driver.DefaultGroup, State: driver.StateDead}); err != nil || len(page.Entries) > 0 {
		t.Errorf("%d dead letters are left, %v", len(page.Entries), err)
	}
}

// TestOneOfManyDeletesWithoutOwner: while nobody consumes a group, processes that delete the same message at the same
// time take turns.
func TestOneOfManyDeletesWithoutOwner(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	ds := []*kafka.Driver{d, again(t, d, c.ListenAddrs()), again(t, d, c.ListenAddrs())}
	for i := range 5 {
		id := fmt.Sprint("m", i)
		publish(t, d, message(id, "k"))
		if moved, deleted := contend(t, ds, target(id), 3); moved+deleted != 1 {
			t.Fatalf("%d deleted it", deleted)
		}
	}
	if st, err := d.Stats(t.Context(), "orders"); err != nil || st.Groups[0].Ready != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}
