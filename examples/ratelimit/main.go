// Command ratelimit shows what guards do: a user who sends too much waits and keeps the order, a robot is blocked at
// the door, an operator lets it in again, and nobody else notices.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, done := context.WithCancel(context.Background())
	defer done()
	store := guard.NewMemory(guard.MemoryOptions{})

	// At the door: 5 messages of a user in 10 s; who tries 3 times more is blocked for an hour.
	door, err := guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{{
		Name: "publish", Rule: guard.Rule{Limit: 5, Window: 10 * time.Second, Penalty: guard.Penalty{After: 3}},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"),
		ferry.Options{Hooks: ferry.Hooks{Authorize: door.Authorize}})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())
	robot(ctx, broker, store)

	// At work: 2 messages of a user in a second; what is more waits for its turn.
	var mu sync.Mutex
	waited := map[string]bool{}
	limiter, err := guard.NewLimiter(store, guard.LimiterOptions{
		Limits: []guard.Limit{{Name: "handle", Rule: guard.Rule{Limit: 2, Window: time.Second}}},
		Hook: func(_ context.Context, e guard.Event) {
			mu.Lock()
			defer mu.Unlock()
			waited[e.Key] = waited[e.Key] || e.Kind == guard.EventLimited
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 5 {
		publish(ctx, broker, "excited", fmt.Sprint(i))
	}
	publish(ctx, broker, "calm", "hello")

	seen, total, start := map[string][]string{}, 0, time.Now()
	w := worker.New(broker, worker.Options{Concurrency: 8})
	worker.Handle(w, "chat", func(_ context.Context, m *ferry.Msg[string]) error {
		mu.Lock()
		defer mu.Unlock()
		seen[m.Key] = append(seen[m.Key], fmt.Sprintf("%s (attempt %d)", m.Value, m.Attempt))
		if total++; total == 11 {
			done()
		}
		return nil
	}, worker.Use(guard.Layers{Limit: limiter}.Middleware()...))
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for _, user := range []string{"excited", "calm"} {
		fmt.Printf("%s: %s, had to wait: %v\n", user, strings.Join(seen[user], ", "), waited[user])
	}
	fmt.Printf("5 messages at 2 a second took more than 2 s: %v\n", time.Since(start) > 2*time.Second)
}

func publish(ctx context.Context, b *ferry.Broker, user, text string) {
	if _, err := ferry.Publish(ctx, b, "chat", text, ferry.Key(user)); err != nil {
		log.Fatal(err)
	}
}

// robot publishes until it is kept out, and is let in again by an operator.
func robot(ctx context.Context, b *ferry.Broker, store guard.Store) {
	for i := 1; i <= 10; i++ {
		_, err := ferry.Publish(ctx, b, "chat", fmt.Sprint(i), ferry.Key("robot"))
		var refusal *guard.Refusal
		switch {
		case err == nil:
			fmt.Printf("robot %2d: published\n", i)
		case errors.As(err, &refusal):
			fmt.Printf("robot %2d: %s, try again in %v\n", i, refusal.Reason, refusal.After.Round(10*time.Second))
		default:
			log.Fatal(err)
		}
	}
	admin, err := guard.NewAdmin(store, "ann")
	if err != nil {
		log.Fatal(err)
	}
	if err := admin.Unblock(ctx, "publish", "robot", "it was a load test"); err != nil {
		log.Fatal(err)
	}
	changes, err := admin.Audit(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s %s, because %s\n", changes[0].Actor, changes[0].Action, changes[0].Key, changes[0].Reason)
}
