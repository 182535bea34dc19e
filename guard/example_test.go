package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

// exampleBroker returns an empty broker, a context, and what ends it.
func exampleBroker(hooks ferry.Hooks) (*ferry.Broker, context.Context, context.CancelFunc) {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	broker, err := memory.Open(ctx, memory.Options{Broker: ferry.Options{Hooks: hooks}})
	if err != nil {
		fmt.Println(err)
	}
	return broker, ctx, done
}

// All layers, in the order that suits most programs.
func ExampleLayers() {
	broker, ctx, done := exampleBroker(ferry.Hooks{})
	defer broker.Close(context.Background())
	store := guard.NewMemory(guard.MemoryOptions{}) // or OpenDir, or package guard/redis

	limit, _ := guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{
		{Name: "user", Rule: guard.Rule{Limit: 5, Window: 10 * time.Second, Penalty: guard.Penalty{After: 3}}},
		{Name: "billing", Key: guard.Constant("all"), Rule: guard.Rule{Limit: 500, Window: time.Second, Burst: 50}},
	}})
	slots, _ := guard.NewConcurrency(store, guard.ConcurrencyOptions{Name: "tenant", Template: "{header.tenant}", Max: 10})
	once, _ := guard.NewDedup(store, guard.DedupOptions{Name: "orders"})
	breaker, _ := guard.NewBreaker(guard.BreakerOptions{Name: "billing", Store: store})

	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[string]) error {
		fmt.Println("billed", m.Value)
		done()
		return nil
	}, worker.Timeout(30*time.Second),
		worker.Use(guard.Layers{Limit: limit, Concurrency: slots, Dedup: once, Breaker: breaker}.Middleware()...))
	_, _ = ferry.Publish(ctx, broker, "orders", "a boat", ferry.Key("user-1"))
	fmt.Println(w.Run(ctx))
	// Output:
	// billed a boat
	// <nil>
}

// A publisher is told when to try again.
func ExampleLimiter_Authorize() {
	store := guard.NewMemory(guard.MemoryOptions{})
	door, _ := guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{
		{Name: "user", Rule: guard.Rule{Limit: 2, Window: time.Minute}},
	}})
	broker, ctx, done := exampleBroker(ferry.Hooks{Authorize: door.Authorize})
	defer done()
	defer broker.Close(context.Background())
	for range 3 {
		_, err := ferry.Publish(ctx, broker, "chat", "hi", ferry.Key("user-1"))
		var refusal *guard.Refusal
		if errors.As(err, &refusal) {
			fmt.Println(refusal.Reason, "for", refusal.After.Round(time.Minute), errors.Is(err, ferry.ErrRefused))
		}
	}
	// Output: rate_limited for 1m0s true
}

// Groups have rules of their own, and may be changed at any time.
func ExampleLimit_groups() {
	vips := map[string]bool{"ann": true}
	limiter, _ := guard.NewLimiter(guard.NewMemory(guard.MemoryOptions{}), guard.LimiterOptions{Limits: []guard.Limit{{
		Name: "user", Rule: guard.Rule{Limit: 1, Window: time.Minute},
		Groups: map[string]guard.Rule{"vip": {Limit: 3, Window: time.Minute}},
		Group: func(_ context.Context, user string) string {
			if vips[user] {
				return "vip"
			}
			return ""
		},
	}}})
	for _, user := range []string{"ann", "bob"} {
		passed := 0
		for range 10 {
			if limiter.Allow(context.Background(), &ferry.Message{Key: user}) == nil {
				passed++
			}
		}
		fmt.Println(user, passed)
	}
	err := limiter.SetRule("user", "gold", guard.Rule{Limit: 9, Window: time.Minute})
	fmt.Println(errors.Is(err, ferry.ErrNotFound))
	// Output:
	// ann 3
	// bob 1
	// true
}

// At most two messages of a tenant are handled at once; the others wait in the broker.
func ExampleNewConcurrency() {
	slots, err := guard.NewConcurrency(guard.NewMemory(guard.MemoryOptions{}), guard.ConcurrencyOptions{
		Name: "tenant", Template: "{header.tenant}", Max: 2,
	})
	fmt.Println(slots != nil, err)
	// Output: true <nil>
}

// A message that is delivered twice is handled once.
func ExampleNewDedup() {
	once, _ := guard.NewDedup(guard.NewMemory(guard.MemoryOptions{}), guard.DedupOptions{Name: "orders"})
	handle := once.Middleware()(func(_ context.Context, d *ferry.Delivery) error {
		fmt.Println("handled", d.ID)
		return nil
	})
	d := &ferry.Delivery{Message: &ferry.Message{Topic: "orders", ID: "order-1"}}
	fmt.Println(handle(context.Background(), d), handle(context.Background(), d))
	// Output:
	// handled order-1
	// <nil> <nil>
}

// After two failures in a row the downstream is left alone for half a minute.
func ExampleNewBreaker() {
	breaker, _ := guard.NewBreaker(guard.BreakerOptions{Name: "billing", Failures: 2})
	handle := breaker.Middleware()(func(context.Context, *ferry.Delivery) error {
		return errors.New("connection refused")
	})
	for range 3 {
		err := handle(context.Background(), &ferry.Delivery{Message: &ferry.Message{}})
		var refusal *guard.Refusal
		fmt.Println(errors.As(err, &refusal), breaker.Status()[0].State)
	}
	// Output:
	// false closed
	// false open
	// true open
}

// What a handler returns follows from what a server answered.
func ExampleHTTP() {
	for _, status := range []int{200, 404, 503} {
		err := guard.HTTP(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"7"}}}, nil)
		outcome, _ := worker.Decided(err)
		fmt.Println(status, guard.ClassOf(err), outcome)
	}
	// Output:
	// 200 ok ack
	// 404 fatal dead
	// 503 transient retry
}

// Operators see and change what guards do; every change is kept with who made it and why.
func ExampleAdmin() {
	ctx := context.Background()
	store := guard.NewMemory(guard.MemoryOptions{})
	admin, _ := guard.NewAdmin(store, "ann")
	_ = admin.Block(ctx, "user", "robot", time.Hour, "spam")
	page, _ := admin.List(ctx, guard.Query{Kind: guard.KindBlocked})
	for _, s := range page.Keys {
		fmt.Println(s.Key, "blocked by", s.Actor, "because of", s.Reason)
	}
	verdict, _ := admin.Check(ctx, "user", "robot", nil)
	fmt.Println("would pass:", verdict.Admitted)
	_ = admin.Unblock(ctx, "user", "robot", "a mistake")
	changes, _ := admin.Audit(ctx, 10)
	fmt.Println(len(changes), "changes, the last:", changes[0].Action)
	// Output:
	// robot blocked by ann because of spam
	// would pass: false
	// 2 changes, the last: unblock
}
