package ferry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

func TestAsyncKeepsOrderAndAnswersEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDriver(t, time.Millisecond)
		b := newBroker(t, d, ferry.Options{})
		var futures []*ferry.Future
		for i := range 2000 {
			f, err := b.PublishAsync(t.Context(), &ferry.Message{Topic: "t", Key: "k", ID: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			futures = append(futures, f)
		}
		if err := b.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := 0
		for _, batch := range d.batches {
			for _, id := range batch {
				if id != fmt.Sprint(next) {
					t.Fatalf("message %s was sent in place of %d", id, next)
				}
				next++
			}
		}
		for i, f := range futures {
			select {
			case <-f.Done():
			default:
				t.Fatalf("Flush returned before future %d was done", i)
			}
			if r, err := f.Wait(t.Context()); err != nil || r.ID != fmt.Sprint(i) {
				t.Fatalf("future %d: %+v, %v", i, r, err)
			}
		}
	})
}

func TestAsyncIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fail := range []bool{true, false} {
			b := newBroker(t, newSlowDriver(t, time.Second), ferry.Options{MaxAsync: 3, FailWhenFull: fail})
			publish := func() error {
				_, err := b.PublishAsync(t.Context(), &ferry.Message{Topic: "t"})
				return err
			}
			for range 3 {
				if err := publish(); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			err := publish()
			if fail && (!errors.Is(err, ferry.ErrFull) || time.Since(start) != 0) {
				t.Errorf("full: error %v after %v, want ErrFull at once", err, time.Since(start))
			}
			if !fail && (err != nil || time.Since(start) != time.Second) {
				t.Errorf("full: error %v after %v, want room after the first trip", err, time.Since(start))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if err := b.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Flush with a short deadline: %v", err)
			}
			cancel()
		}
	})
}

func TestCloseWaitsForAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, newSlowDriver(t, time.Second), ferry.Options{})
		var receipts int
		for range 100 {
			if err := b.PublishFunc(t.Context(), &ferry.Message{Topic: "t"}, func(r ferry.Receipt) {
				if r.Err == nil {
					receipts++
				}
				if receipts == 50 {
					panic("a callback's own bug")
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if receipts != 100 {
			t.Errorf("%d receipts before Close returned, want 100", receipts)
		}
		if _, err := b.PublishAsync(t.Context(), &ferry.Message{Topic: "t"}); !errors.Is(err, ferry.ErrClosed) {
			t.Errorf("publish after Close: %v, want ErrClosed", err)
		}
	})
}

// pipelined is a driver that is asked for the next batch before it has answered the last.
type pipelined struct {
	*slowDriver
	under, most atomic.Int32
}

func (d *pipelined) Send(ctx context.Context, msgs []*ferry.Message,
	o driver.PublishOptions) func() ([]ferry.Receipt, error) {
	d.most.Store(max(d.most.Load(), d.under.Add(1))) // Send is called by one sender
	var rs []ferry.Receipt
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		rs, err = d.Publish(ctx, msgs, o)
	}()
	synctest.Wait() // it has noted their order
	return func() ([]ferry.Receipt, error) {
		<-over
		d.under.Add(-1)
		return rs, err
	}
}

// TestAsyncSendsAhead: where a driver can, batches are on their way while others are answered, and both keep the order.
func TestAsyncSendsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 9000 // more than two batches, and fewer than wait for room
		d := &pipelined{slowDriver: newSlowDriver(t, time.Second)}
		b := newBroker(t, d, ferry.Options{})
		var answered []string
		start := time.Now()
		for i := range messages {
			if err := b.PublishFunc(t.Context(), &ferry.Message{Topic: "t", Key: "k", ID: fmt.Sprint(i)}, func(r ferry.Receipt) {
				answered = append(answered, r.ID)
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		sent := slices.Concat(d.batches...)
		for i := range messages {
			if sent[i] != fmt.Sprint(i) || answered[i] != fmt.Sprint(i) {
				t.Fatalf("message %d: %s was sent, %s was answered", i, sent[i], answered[i])
			}
		}
		if most, trips := d.most.Load(),
			len(d.batches); most < 2 || most > 3 || time.Since(start) >= time.Duration(trips)*time.Second {
			t.Errorf("%d batches, at most %d at once, took %v", trips, most, time.Since(start))
		}
	})
}

// TestAsyncBodiesAreKept: publishers may use a body again at once, and what keeps it meanwhile is used again too; every
// message is stored as it was given.
func TestAsyncBodiesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 5000
		slow := newSlowDriver(t, time.Millisecond)
		for topic, d := range map[string]driver.Driver{"waits": slow, "sends-ahead": &pipelined{slowDriver: slow}} {
			b := newBroker(t, d, ferry.Options{MaxAsync: 700})
			var body []byte
			for i := range messages {
				body = append(body[:0], strings.Repeat(fmt.Sprint(i, " "), 1+i%40)...)
				if err := b.PublishFunc(t.Context(), &ferry.Message{Topic: topic, ID: fmt.Sprint(i), Body: body},
					func(ferry.Receipt) {}); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			s, err := slow.Subscribe(t.Context(), driver.SubscribeOptions{Topic: topic, Instance: "x", MaxInflight: messages})
			if err != nil {
				t.Fatal(err)
			}
			for n := 0; n < messages; {
				ds, err := s.Receive(t.Context(), messages)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range ds {
					if i, _ := strconv.Atoi(x.ID); string(x.Body) != strings.Repeat(x.ID+" ", 1+i%40) {
						t.Fatalf("%s: message %s has the body %.40q", topic, x.ID, x.Body)
					}
				}
				n += len(ds)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
