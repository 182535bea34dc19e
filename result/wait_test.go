package result_test

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
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/worker"
)

// Whoever waits has the result at the moment it is returned, and a failure at the moment it is final, with its text.
func TestWait(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		type order struct{ Total int }
		r.handle(func(ctx context.Context, d *ferry.Delivery) error {
			time.Sleep(100 * time.Second)
			if string(d.Body) == "fails" {
				return errBilling
			}
			return result.Return(ctx, order{42})
		}, worker.MaxAttempts(2), worker.Retry(ferry.Delays(time.Minute)))
		begin := time.Now()
		id := r.publish("x")
		v, err := result.Wait[order](context.Background(), r.broker, topic, group, id)
		if v.Total != 42 || err != nil || time.Since(begin) != 100*time.Second {
			t.Errorf("%+v, %v after %v", v, err, time.Since(begin))
		}
		_, err = result.Wait[int](context.Background(), r.broker, topic, group, id)
		if !errors.Is(err, ferry.ErrInvalid) || !strings.Contains(err.Error(), "into a int") ||
			strings.Contains(err.Error(), "dead letter") {
			t.Errorf("read as another type: %v", err)
		}
		begin = time.Now()
		_, err = result.Wait[order](context.Background(), r.broker, topic, group, r.publish("fails"))
		if !errors.Is(err, result.ErrFailed) || !strings.Contains(err.Error(), "attempt 2: timeout to billing") ||
			time.Since(begin) != 260*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// What ends without a handler is noticed too: within seconds, by the word of the broker.
func TestWaitForWhatNoHandlerEnds(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		if err := r.broker.Driver().EnsureTopic(ctx, topic, ferry.TopicConfig{ExpiredDead: true}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err := result.Wait[string](ctx, r.broker, topic, group, r.publish("x", ferry.TTL(time.Minute)))
		if !errors.Is(err, result.ErrFailed) || time.Since(begin) > 66*time.Second {
			t.Errorf("expired into the dead letters: %v after %v", err, time.Since(begin))
		}
		removed := r.publish("y")
		begin = time.Now()
		time.AfterFunc(time.Minute, func() { r.broker.Driver().Delete(ctx, []driver.Target{{Topic: topic, ID: removed}}) })
		_, err = result.Wait[string](ctx, r.broker, topic, group, removed)
		if !errors.Is(err, ferry.ErrNotFound) || time.Since(begin) < time.Minute || time.Since(begin) > 71*time.Second {
			t.Errorf("removed: %v after %v", err, time.Since(begin))
		}
	})
}

// Where nobody keeps results, whoever waits is told, and how to change that.
func TestWaitForWhatNobodyKeeps(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.work(func(context.Context, *ferry.Delivery) error { return nil })
		begin := time.Now()
		_, err := result.Wait[string](context.Background(), r.broker, topic, group, r.publish("x"))
		if !errors.Is(err, ferry.ErrNotFound) || !strings.Contains(err.Error(), "result.Keep") ||
			time.Since(begin) > 11*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if s, err := result.Await(context.Background(), r.broker, topic, group,
			"nobody"); !errors.Is(err, ferry.ErrNotFound) || s.State != "" {
			t.Errorf("of no message it says %q, %v", s.State, err)
		}
		for _, c := range [][3]string{{"no such topic", group, "x"}, {topic, "", "x"}, {topic, group, ""},
			{topic, group, strings.Repeat("x", driver.MaxIDLen+1)}} {
			if _, err := result.Wait[string](context.Background(), r.broker, c[0], c[1],
				c[2]); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("%v: %v", c, err)
			}
		}
		if _, err := result.Get(context.Background(), nil, topic, group, "x"); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("without a broker: %v", err)
		}
	})
}

// Whoever gives up is told how far the message is.
func TestWaitGivesUp(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.handle(func(context.Context, *ferry.Delivery) error { return errBilling }, worker.Retry(ferry.Delays(time.Hour)))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := result.Wait[string](ctx, r.broker, topic, group, r.publish("x"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it is retrying") {
			t.Errorf("%v", err)
		}
	})
}

// A broker that is away for a time ends nobody's waiting.
func TestWaitOutlivesAnOutage(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.handle(func(ctx context.Context, _ *ferry.Delivery) error {
			time.Sleep(time.Minute)
			return result.Return(ctx, "total")
		})
		id := r.publish("x")
		r.driver.Set(faulty.Wait, faulty.Fail(ferry.ErrNotApplied))
		time.AfterFunc(30*time.Second, func() { r.driver.Set(faulty.Wait, nil) })
		if v, err := result.Wait[string](context.Background(), r.broker, topic, group, id); v != "total" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	})
}

// Parts that were published together are waited for together, in their order, and one that failed does not hide the
// others.
func TestWaitAll(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.handle(func(ctx context.Context, d *ferry.Delivery) error {
			n := int(d.Body[0] - '0')
			time.Sleep(time.Duration(10-n) * time.Second)
			if n == 2 {
				return worker.Fatal(errBilling)
			}
			return result.Return(ctx, n*n)
		})
		var ids []string
		for i := range 4 {
			ids = append(ids, r.publish(fmt.Sprint(i)))
		}
		begin := time.Now()
		got, err := result.WaitAll[int](context.Background(), r.broker, topic, group, ids...)
		if fmt.Sprint(got) != "[0 1 0 9]" || !errors.Is(err, result.ErrFailed) || !strings.Contains(err.Error(), ids[2]) ||
			time.Since(begin) != 10*time.Second {
			t.Errorf("%v, %v after %v", got, err, time.Since(begin))
		}
	})
}
