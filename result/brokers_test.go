package result_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/worker"
)

// brokers runs a test on each broker that needs no JVM.
func brokers(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Parallel()
	run := "?prefix=result-" + strings.ToLower(rand.Text())
	for name, url := range map[string]func(t *testing.T) string{
		"memory": func(*testing.T) string { return "memory://" },
		"disk":   func(t *testing.T) string { return "disk://" + t.TempDir() },
		"redis":  func(t *testing.T) string { return redistest.Shared(t).URL() + run },
		"redisstream": func(t *testing.T) string {
			return strings.Replace(redistest.Shared(t).URL(), "redis:", "redisstream:", 1) + run + "s"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := open.URL(t.Context(), url(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close(context.Background()) })
			f(t, &rig{t: t, broker: b})
		})
	}
}

// Many wait for many, from begin to end, on each broker: none hangs, none gets another's.
func TestOnEveryBroker(t *testing.T) {
	brokers(t, func(t *testing.T, r *rig) {
		r.handle(func(ctx context.Context, d *ferry.Delivery) error {
			result.Progress(ctx, 1, 1, "read")
			switch body := string(d.Body); {
			case strings.HasSuffix(body, "7"):
				return worker.Fatal(errors.New("no " + body))
			case strings.HasSuffix(body, "3") && d.Attempt == 1:
				return errBilling
			default:
				return result.Return(ctx, "got "+body)
			}
		}, worker.Retry(ferry.Delays(100*time.Millisecond)))
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				body := fmt.Sprint("order ", i)
				v, err := result.Wait[string](ctx, r.broker, topic, group,
					r.publish(body, ferry.Delay(time.Duration(i%3)*100*time.Millisecond)))
				switch {
				case i%10 == 7:
					if !errors.Is(err, result.ErrFailed) || !strings.Contains(err.Error(), "no "+body) {
						t.Errorf("%s: %q, %v", body, v, err)
					}
				case v != "got "+body || err != nil:
					t.Errorf("%s: %q, %v", body, v, err)
				}
			})
		}
		all.Wait()
	})
}

// A message that is settled has its result, on each broker, whoever comes first.
func TestSettledHasItsResult(t *testing.T) {
	brokers(t, func(t *testing.T, r *rig) {
		r.handle(func(context.Context, *ferry.Delivery) error { return nil })
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for range 20 {
			id := r.publish("x")
			for {
				s, err := result.Get(ctx, r.broker, topic, group, id)
				if err != nil {
					t.Fatal(err) // neither a message nor a result
				}
				if s.State == result.Done {
					break
				}
			}
		}
	})
}

// Two claims of one message write in any order: the later one stays, on each broker.
func TestLaterClaimStays(t *testing.T) {
	brokers(t, func(t *testing.T, r *rig) {
		keep := r.keep(result.Options{TTL: time.Minute})
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				_ = keep(func(ctx context.Context, _ *ferry.Delivery) error {
					_ = result.Return(ctx, i) // refused where a later one was faster
					return nil
				})(context.Background(), delivery(time.Duration(i)*time.Second, 1))
			})
		}
		all.Wait()
		if v, err := result.Wait[int](t.Context(), r.broker, topic, group, "m1"); v != 9 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	})
}
