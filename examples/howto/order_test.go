package howto_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/worker"
)

type change struct {
	User string `json:"user"`
	Step int    `json:"step"`
}

func TestOrder(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		ctx, b := t.Context(), k.Broker
		var mu sync.Mutex
		seen := map[string][]int{}
		apply := func(_ context.Context, m *ferry.Msg[change]) error {
			if m.Value.User == "ann" && m.Value.Step == 1 && m.Attempt == 1 {
				return errors.New("timeout")
			}
			mu.Lock()
			defer mu.Unlock()
			seen[m.Value.User] = append(seen[m.Value.User], m.Value.Step)
			return nil
		}

		//snippet:begin key
		for step := range 3 {
			for _, user := range []string{"ann", "bob"} {
				_, err := ferry.Publish(ctx, b, "changes", change{user, step}, ferry.Key(user))
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		w := worker.New(b, worker.Options{Concurrency: 32}) // 32 users at once, each user one at a time
		worker.Handle(w, "changes", apply, worker.Retry(ferry.Delays(time.Minute)))
		//snippet:end

		of := func(user string) []int {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(seen[user])
		}
		k.Start(w)
		if ann, bob := of("ann"), of("bob"); !slices.Equal(bob, []int{0, 1, 2}) || !slices.Equal(ann, []int{0}) {
			t.Fatalf("%v, %v: ann waits for her retry, bob does not", ann, bob)
		}
		k.Advance(time.Minute)
		if ann := of("ann"); !slices.Equal(ann, []int{0, 1, 2}) {
			t.Fatalf("%v", ann)
		}
	})
}

func TestRelaxed(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		var seen []int
		apply := func(_ context.Context, m *ferry.Msg[int]) error {
			if m.Value == 0 && m.Attempt == 1 {
				return errors.New("timeout")
			}
			seen = append(seen, m.Value)
			return nil
		}
		w := worker.New(k.Broker, worker.Options{})

		//snippet:begin relaxed
		worker.Handle(w, "changes", apply, worker.Relaxed()) // a retry lets its followers pass
		//snippet:end

		k.Start(w)
		for i := range 2 {
			if _, err := ferry.Publish(t.Context(), k.Broker, "changes", i, ferry.Key("ann")); err != nil {
				t.Fatal(err)
			}
		}
		k.Drain()
		if !slices.Equal(seen, []int{1, 0}) {
			t.Fatalf("%v", seen)
		}
	})
}
