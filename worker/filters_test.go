package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/encrypt"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// lock returns a filter with the key of an id.
func lock(t *testing.T, id string) codec.Filter {
	t.Helper()
	f, err := encrypt.New(encrypt.Options{Keys: encrypt.KeyRing{Active: encrypt.Key{ID: id,
		Secret: bytes.Repeat([]byte(id), 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// filtered returns two brokers on the same messages: one of the producer, one of the consumer.
func filtered(t *testing.T, r *rig, produce, consume []codec.Filter) (producer, consumer *ferry.Broker) {
	t.Helper()
	var err error
	if producer, err = ferry.New(r.memory, ferry.Options{Filters: produce}); err != nil {
		t.Fatal(err)
	}
	if consumer, err = ferry.New(r.memory, ferry.Options{Filters: consume}); err != nil {
		t.Fatal(err)
	}
	return producer, consumer
}

// kinds of handlers, each of which tells the bodies that it gets.
var handlerKinds = map[string]func(w *worker.Worker, got func(string), opts ...worker.HandlerOption){
	"typed": func(w *worker.Worker, got func(string), opts ...worker.HandlerOption) {
		worker.Handle(w, topic, func(_ context.Context, m *ferry.Msg[string]) error { got(m.Value); return nil },
			opts...)
	},
	"raw": func(w *worker.Worker, got func(string), opts ...worker.HandlerOption) {
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			got(strings.Trim(string(d.Body), `"`))
			if d.Headers != nil {
				got(fmt.Sprint("headers ", d.Headers))
			}
			return nil
		}, opts...)
	},
	"batch": func(w *worker.Worker, got func(string), opts ...worker.HandlerOption) {
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[string]) error {
			for _, m := range ms {
				got(m.Value)
			}
			return nil
		}, append(opts, worker.BatchSize(10), worker.BatchWait(time.Second))...)
	},
}

// TestHandlersGetPlainBodies: typed, raw and batch handlers, and the middleware around them, get bodies as they were
// published, beside such that no filter changed. What cannot be undone is a dead letter at once, as it is stored, with
// a hint.
func TestHandlersGetPlainBodies(t *testing.T) {
	for name, register := range handlerKinds {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				producer, consumer := filtered(t, r, []codec.Filter{lock(t, "1")}, []codec.Filter{lock(t, "1")})
				stranger, _ := filtered(t, r, []codec.Filter{lock(t, "2")}, nil)
				for i, b := range []*ferry.Broker{producer, r.broker, stranger, producer} {
					if _, err := ferry.Publish(t.Context(), b, topic, fmt.Sprint("body ", i)); err != nil {
						t.Fatal(err)
					}
				}
				w := worker.New(consumer, worker.Options{Concurrency: 1})
				var got, outside []string
				register(w, func(body string) { got = append(got, body) },
					worker.Use(func(next worker.Handler) worker.Handler {
						return func(ctx context.Context, d *ferry.Delivery) error {
							outside = append(outside, strings.Trim(string(d.Body), `"`))
							return next(ctx, d)
						}
					}))
				stop := start(t, w)
				pause(5 * time.Second)
				mustStop(t, stop)
				if want := []string{"body 0", "body 1", "body 3"}; !slices.Equal(got, want) ||
					!slices.Equal(outside, want) {
					t.Errorf("the handler got %q, middleware %q; want %q", got, outside, want)
				}
				dead := r.browse(topic, driver.StateDead)
				if len(dead) != 1 {
					t.Fatalf("%d dead letters, want the one with another key", len(dead))
				}
				if l := dead[0]; l.Dead.Reason != driver.ReasonInvalidMessage ||
					!strings.Contains(l.Dead.Error, `there is no key "2" here`) ||
					l.Headers[ferry.EncodingHeader] != "aes-gcm;k=2" || bytes.Contains(l.Body, []byte("body")) {
					t.Errorf("dead letter: %s: %s, %v %q", l.Dead.Reason, l.Dead.Error, l.Headers, l.Body)
				}
				again, err := stranger.UndoEntry(t.Context(), dead[0])
				if err != nil || string(again.Body) != `"body 2"` || string(again.Dead.Message.Body) != `"body 2"` {
					t.Errorf("with its key: %q, %v", again.Body, err)
				}
			})
		})
	}
}

// TestConsumerWithoutFilters: a program that has no filter at all says which one is missing, and keeps the message
// whole.
func TestConsumerWithoutFilters(t *testing.T) {
	for name, register := range handlerKinds {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				producer, consumer := filtered(t, r, []codec.Filter{lock(t, "1")}, nil)
				if _, err := ferry.Publish(t.Context(), producer, topic, "body"); err != nil {
					t.Fatal(err)
				}
				w := worker.New(consumer, worker.Options{})
				register(w, func(body string) { t.Errorf("the handler got %q", body) })
				stop := start(t, w)
				pause(5 * time.Second)
				mustStop(t, stop)
				dead := r.browse(topic, driver.StateDead)
				if len(dead) != 1 || !strings.Contains(dead[0].Dead.Error,
					`no filter here for "aes-gcm" (hint: give this program the filters`) {
					t.Fatalf("dead letters: %v", dead)
				}
				if m, err := producer.UndoFilters(t.Context(), dead[0].Message); err != nil ||
					string(m.Body) != `"body"` {
					t.Errorf("it is not whole: %v, %v", m, err)
				}
			})
		})
	}
}

// TestFilterThatCannotUndoYet: while a key management service is away a message is retried, and not called invalid.
func TestFilterThatCannotUndoYet(t *testing.T) {
	for name, register := range handlerKinds {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				away := 2
				late, err := encrypt.New(encrypt.Options{Lookup: func(context.Context, string) ([]byte, error) {
					if away--; away >= 0 {
						return nil, errors.New("no route")
					}
					return bytes.Repeat([]byte("1"), 32), nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				producer, consumer := filtered(t, r, []codec.Filter{lock(t, "1")}, []codec.Filter{late})
				if _, err := ferry.Publish(t.Context(), producer, topic, "body"); err != nil {
					t.Fatal(err)
				}
				w := worker.New(consumer, worker.Options{})
				var got []string
				register(w, func(body string) { got = append(got, body) })
				stop := start(t, w)
				pause(5 * time.Minute)
				mustStop(t, stop)
				if dead := r.browse(topic, driver.StateDead); len(dead) != 0 || !slices.Equal(got, []string{"body"}) {
					t.Errorf("got %q, dead %v", got, dead)
				}
			})
		})
	}
}

// TestFollowUpsAreFiltered: what a handler emits is stored as what it publishes, and a message that it only passes on
// is encrypted anew.
func TestFollowUpsAreFiltered(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		b, _ := filtered(t, r, []codec.Filter{lock(t, "1")}, nil)
		if _, err := ferry.Publish(t.Context(), b, topic, "body"); err != nil {
			t.Fatal(err)
		}
		w := worker.New(b, worker.Options{})
		worker.HandleRaw(w, topic, func(ctx context.Context, d *ferry.Delivery) error {
			passed := *d.Message
			passed.Topic, passed.ID = "passed", "p"
			_, err := b.Publish(ctx, &passed)
			return errors.Join(err, worker.Emit(ctx, "emitted", d.Body, ferry.Key("k")))
		})
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		for _, to := range []string{"passed", "emitted"} {
			page, err := r.memory.Browse(t.Context(),
				driver.Query{Topic: to, Group: driver.DefaultGroup, State: driver.StateReady, Limit: 10})
			if err != nil || len(page.Entries) != 1 {
				t.Fatalf("%s: %v, %v", to, page, err)
			}
			e := page.Entries[0]
			if bytes.Contains(e.Body, []byte("body")) {
				t.Errorf("%s: stored as it is: %q", to, e.Body)
			}
			if m, err := b.UndoFilters(t.Context(), e.Message); err != nil || string(m.Body) != `"body"` {
				t.Errorf("%s: %v, %v", to, m, err)
			}
		}
	})
}
