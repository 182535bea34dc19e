package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

// cutBetween cuts a wire when something of a topic is sent after something of another, which is stored. Names are
// beginnings of theirs.
func cutBetween(c *kfake.Cluster, w *wire, made, ends string) {
	stored := false // requests are handled one by one
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		topic := topicOf(c, kreq.(*kmsg.ProduceRequest))
		switch {
		case strings.HasPrefix(topic, made):
			stored = true
		case stored && strings.HasPrefix(topic, ends):
			stored = false
			w.cut()
			return nil, errCut, true
		}
		return nil, nil, false
	})
}

// killed moves a message with a driver whose wire is cut before the move has ended.
func killed(t *testing.T, c *kfake.Cluster, d *kafka.Driver, w *wire, transactions bool, move driver.Move) {
	t.Helper()
	mover, err := kafka.New(t.Context(), kafka.Options{Brokers: c.ListenAddrs(), Namespace: d.Namespace(), Partitions: 1,
		InternalPartitions: 1, Transactions: transactions, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // what it still has to send goes nowhere until then
		w.mend()
		end(t, mover)
	})
	// what the owner has settled is committed a moment later
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if es, err := mover.Get(t.Context(), move.Target); err == nil && len(es) == 1 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the mover sees %+v, %v", es, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		err := mover.Move(ctx, []driver.Move{move})[0]
		w.cut() // otherwise nothing will
		over <- err
	}()
	w.wait(t)
	cancel()
	if err := <-over; err == nil {
		t.Error("a move that was cut off says that it was done")
	} else {
		t.Log("it says:", err)
	}
}

// finishMove moves a message as soon as the claim of a process that is gone has lapsed: it is delivered, and in no
// other place any more.
func finishMove(t *testing.T, d *kafka.Driver, s driver.Subscription, move driver.Move, began time.Time) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := d.Move(t.Context(), []driver.Move{move})[0]
		if err == nil {
			break
		}
		if !errors.Is(err, driver.ErrConflict) || time.Now().After(deadline) {
			t.Fatalf("moving it again: %v", err)
		}
	}
	if took := time.Since(began); took < 25*time.Second {
		t.Errorf("it was moved again after %v, while who began it might have gone on", took)
	}
	x := receive(t, s)
	settle(t, s, x, driver.Ack, 0)
	if string(x.Body) != "edited" {
		t.Errorf("received %q", x.Body)
	}
	if _, err := d.Get(t.Context(), move.Target); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestMoverDies: a process dies between storing what comes of a message and the end of it. Without transactions it is
// in both places, and can be moved again after 30 s, which delivers it again; with them the move has not begun.
func TestMoverDies(t *testing.T) {
	t.Parallel()
	topics := map[string][2]string{"dead": {"_ferry.retry", "_ferry.dead"}, "held": {"orders", "_ferry.held"},
		"delayed": {"orders", "_ferry.held"}, "invalid": {"orders", "_ferry.invalid"}}
	for name, plant := range plants() {
		for _, transactions := range []bool{false, true} {
			mode := map[bool]string{false: name, true: name + " with transactions"}[transactions]
			t.Run(mode, func(t *testing.T) {
				t.Parallel()
				c, w := fake(t), &wire{}
				d, err := kafka.New(t.Context(), kafka.Options{Brokers: c.ListenAddrs(), Namespace: "x" + rand.Text()[:6] + ".",
					Partitions: 1, InternalPartitions: 1, Transactions: transactions})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { end(t, d) })
				publish(t, d, message("first", "k"))
				s := subscribe(t, d, "x")
				settle(t, s, receive(t, s), driver.Ack, 0)
				move := driver.Move{Target: plant(t, d, s, "m"), Edit: &driver.Message{Body: []byte("edited")}}
				began := time.Now()
				if transactions {
					w.fatal = int16(kmsg.EndTxn)
				} else {
					cutBetween(c, w, d.Namespace()+topics[name][0], d.Namespace()+topics[name][1])
				}
				killed(t, c, d, w, transactions, move)
				if !transactions {
					settle(t, s, receive(t, s), driver.Ack, 0)
				}
				if es, err := d.Get(t.Context(), move.Target); err != nil || len(es) != 1 {
					t.Fatalf("what was to be moved: %+v, %v", es, err)
				}
				if name == "dead" { // the others go the same way; once is enough to wait for
					finishMove(t, d, s, move, began)
				} else if transactions { // what the transaction had stored would come before this
					publish(t, d, message("after", "k"))
					if x := receive(t, s); x.ID != "after" {
						t.Errorf("received %s", x.ID)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				if ds, err := s.Receive(ctx, 1); err == nil {
					t.Errorf("%s was delivered once more", ds[0].ID)
				}
			})
		}
	}
}

// TestLetterOfAMessageThatLives: a dead letter whose mover died before its end is neither replayed nor deleted while
// what came of it is not settled.
func TestLetterOfAMessageThatLives(t *testing.T) {
	t.Parallel()
	c, w := fake(t), &wire{}
	d := openFake(t, c)
	s := subscribe(t, d, "x")
	publish(t, d, message("m", "k"))
	settle(t, s, receive(t, s), driver.Dead, 0)
	to := target("m")
	to.Death = 1
	cutBetween(c, w, d.Namespace()+"_ferry.retry", d.Namespace()+"_ferry.dead")
	killed(t, c, d, w, false, driver.Move{Target: to})
	settle(t, s, receive(t, s), driver.Retry, time.Hour)
	other := again(t, d, c.ListenAddrs())
	errs := append(d.Move(t.Context(), []driver.Move{{Target: to}}), d.Delete(t.Context(), []driver.Target{to})...)
	errs = append(append(errs, other.Move(t.Context(), []driver.Move{{Target: to}})...),
		other.Delete(t.Context(), []driver.Target{to})...)
	for _, err := range errs {
		// and not only because somebody is at it
		if !errors.Is(err, driver.ErrConflict) || !strings.Contains(err.Error(), "replayed meanwhile") {
			t.Errorf("a letter whose message lives: %v", err)
		}
	}
}

// TestRetryBehindAnOpenTransaction: what an owner stored behind the transaction of a mover that died is not hidden from
// the next owner.
func TestRetryBehindAnOpenTransaction(t *testing.T) {
	t.Parallel()
	c, w := fake(t), &wire{fatal: int16(kmsg.EndTxn)}
	d := openFake(t, c)
	s := subscribe(t, d, "x")
	publish(t, d, message("m", "k"))
	settle(t, s, receive(t, s), driver.Dead, 0)
	publish(t, d, message("b", "j"))
	b := receive(t, s)
	killed(t, c, d, w, true, driver.Move{Target: target("m")})
	settle(t, s, b, driver.Retry, time.Millisecond)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x := receive(t, subscribe(t, again(t, d, c.ListenAddrs()), "y")); x.ID != "b" || x.Attempt != 2 {
		t.Errorf("received %s, attempt %d", x.ID, x.Attempt)
	}
}
