package redis_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/guardtest"
	"github.com/ferrymq/ferry/guard/redis"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/internal/redistest"
)

// twice sends every script two times, as if the first answer had been lost, and counts them.
type twice struct {
	times int
	calls atomic.Int64
}

func (*twice) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (*twice) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (h *twice) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		h.calls.Add(1)
		for range h.times - 1 {
			_ = next(ctx, goredis.NewCmd(ctx, cmd.Args()...))
		}
		return next(ctx, cmd)
	}
}

func hooked(t testing.TB, url, prefix string, h *twice) *redis.Store {
	t.Helper()
	o, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := goredis.NewClient(o)
	client.AddHook(h)
	t.Cleanup(func() { _ = client.Close() })
	s, err := redis.Open(context.Background(), redis.Options{Client: client, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEverythingMayBeSentTwice runs the whole suite with every script applied two times.
func TestEverythingMayBeSentTwice(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	guardtest.Run(t, guardtest.Harness{
		Leased: true,
		Open:   func(t testing.TB) guard.Store { return hooked(t, url, "t"+rand.Text(), &twice{times: 2}) },
		Peer: func(t testing.TB, s guard.Store) guard.Store {
			return hooked(t, url, s.(*redis.Store).Prefix(), &twice{times: 2})
		},
	})
}

// TestConcurrentDecisionsTravelTogether: one script for many.
func TestConcurrentDecisionsTravelTogether(t *testing.T) {
	t.Parallel()
	count := &twice{times: 1}
	s := hooked(t, redistest.Shared(t).URL(), "t"+rand.Text(), count)
	rule := &guard.Rule{Limit: 1000, Window: time.Hour}
	var wg sync.WaitGroup
	const askers, times = 64, 20
	for i := range askers {
		wg.Go(func() {
			for range times {
				if v, err := s.Take(t.Context(),
					store.Take{Items: []store.Item{{Limit: "user", Key: fmt.Sprint(i), Rule: rule}}}); err != nil || !v.Admitted {
					t.Errorf("%+v, %v", v, err)
				}
			}
		})
	}
	wg.Wait()
	if n := count.calls.Load(); n > askers*times/4 {
		t.Errorf("%d scripts for %d decisions", n, askers*times)
	}
}

// TestAskerThatGivesUp leaves the others alone.
func TestAskerThatGivesUp(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	s := open(t, server.URL(), "t")
	defer func() { _ = s.Close(context.Background()) }()
	ask := func(ctx context.Context) error {
		_, err := s.Take(ctx, store.Take{
			Items: []store.Item{{Limit: "a", Key: "b", Rule: &guard.Rule{Limit: 1000, Window: time.Hour}}}})
		return err
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Millisecond)
			defer cancel()
			if err := ask(ctx); err == nil {
				t.Error("a frozen server answered")
			}
		})
	}
	wg.Wait()
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ask(ctx) != nil {
		if ctx.Err() != nil {
			t.Fatal("it does not answer again")
		}
	}
}

// TestRestartInTheMiddleOfALimit: with its data on disk the server admits exactly the limit, over its death.
func TestRestartInTheMiddleOfALimit(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	s := open(t, server.URL(), "t")
	defer func() { _ = s.Close(context.Background()) }()
	limiter, err := guard.NewLimiter(s, guard.LimiterOptions{Limits: []guard.Limit{
		{Name: "user", Rule: guard.Rule{Limit: 100, Window: time.Hour, Penalty: guard.Penalty{After: 5}}}}})
	if err != nil {
		t.Fatal(err)
	}
	admitted, away := 0, 0
	for i := 0; i < 300 || admitted < 100; i++ {
		if i == 40 {
			server.Kill()
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		err := limiter.Allow(t.Context(), &driver.Message{ID: fmt.Sprint(i), Key: "a"})
		var refusal *guard.Refusal
		switch {
		case err == nil:
			admitted++
		case !errors.As(err, &refusal):
			t.Fatal(err)
		case refusal.Err != nil: // closed while the server is away
			away++
			time.Sleep(refusal.After)
		case admitted < 99: // an answer that was lost may have counted
			t.Fatalf("refused after %d: %v", admitted, err)
		}
		if i > 5000 {
			t.Fatalf("%d admitted, %d refused because the store was away", admitted, away)
		}
		if refusal != nil && refusal.Reason == driver.ReasonKeyBlocked {
			break
		}
	}
	if admitted != 100 && admitted != 99 {
		t.Errorf("%d admitted, want 100", admitted)
	}
	st, err := s.Status(t.Context(), "user", "a")
	if err != nil || st.Used != 100 || st.Block == nil {
		t.Errorf("%+v, %v; want 100 used and a block", st, err)
	}
}

// TestKilledHoldersLeakNoSlot kills processes that hold slots: when their leases end, all slots are free, and never are
// more held than there are.
// Lesson: L69
func TestKilledHoldersLeakNoSlot(t *testing.T) {
	t.Parallel()
	url, prefix := redistest.Shared(t).URL(), "t"+rand.Text()
	s := open(t, url, prefix)
	defer func() { _ = s.Close(context.Background()) }()
	const most = 4
	for round := range 2 {
		var holders []*exec.Cmd
		held := 0
		for range most + 2 {
			c := exec.Command(os.Args[0], "-test.run=^TestHolderToBeKilled$")
			c.Env = append(os.Environ(), "GUARD_URL="+url, "GUARD_PREFIX="+prefix)
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			holders = append(holders, c)
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			} else if line == "held\n" {
				held++
			}
		}
		if held != most {
			t.Errorf("round %d: %d processes hold a slot, want %d", round, held, most)
		}
		for _, c := range holders {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		deadline := time.Now().Add(time.Minute)
		var tokens []uint64
		for len(tokens) < most && time.Now().Before(deadline) {
			slot, err := s.Acquire(t.Context(), store.SlotRequest{Limit: "work", Key: "k", Max: most, Lease: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if slot.Held {
				tokens = append(tokens, slot.Token)
			} else {
				time.Sleep(slot.After)
			}
		}
		if len(tokens) != most {
			t.Fatalf("round %d: %d of %d slots are free after their holders died", round, len(tokens), most)
		}
		for _, token := range tokens {
			if err := s.Release(t.Context(), store.SlotRequest{Limit: "work", Key: "k", Max: most, Token: token}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestHolderToBeKilled is a process of TestKilledHoldersLeakNoSlot: its handler never returns.
func TestHolderToBeKilled(t *testing.T) {
	url := os.Getenv("GUARD_URL")
	if url == "" {
		t.Skip("runs as a process of its own")
	}
	s := open(t, url, os.Getenv("GUARD_PREFIX"))
	slots, err := guard.NewConcurrency(s,
		guard.ConcurrencyOptions{Name: "work", Key: guard.Constant("k"), Max: 4, Lease: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	handle := slots.Middleware()(func(context.Context, *driver.Delivery) error {
		fmt.Println("held")
		select {}
	})
	_ = handle(context.Background(), &driver.Delivery{Message: &driver.Message{}})
	fmt.Println("refused")
	select {}
}

// TestNothingIsKeptForEver: keys of idle users leave the server by themselves.
func TestNothingIsKeptForEver(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	s := open(t, server.URL(), "t")
	defer func() { _ = s.Close(context.Background()) }()
	ctx := t.Context()
	for _, r := range []guard.Rule{
		{Limit: 1, Window: 20 * time.Second}, {Limit: 1, Window: 20 * time.Second, Burst: 1}, {Unlimited: true},
		{Limit: 1, Window: 20 * time.Second,
			Penalty: guard.Penalty{After: 1, Block: 20 * time.Second, Factor: 1, Max: 20 * time.Second,
				History: 20 * time.Second}},
	} {
		for range 3 {
			if _, err := s.Take(ctx, store.Take{ID: "x",
				Items: []store.Item{{Limit: "user", Key: r.String(), Rule: &r}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Acquire(ctx, store.SlotRequest{Limit: "work", Key: "k", Max: 1, Lease: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(ctx, store.MarkRequest{Name: "once", ID: "i", Lease: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	client := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
	defer func() { _ = client.Close() }()
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil || len(keys) < 8 {
		t.Fatalf("%v, %v", keys, err)
	}
	for _, key := range keys {
		ttl, err := client.PTTL(ctx, key).Result()
		if index := strings.Contains(key, ":i:blocked"); err != nil || (ttl <= 0 || ttl > 2*time.Minute) != index {
			t.Errorf("%s lives for %v, %v", key, ttl, err)
		}
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]redis.Options{
		"one of URL and Client": {}, "scheme": {URL: "http://x"}, "prefix": {URL: "redis://x", Prefix: "{}"},
		"timeout": {URL: "redis://x", Timeout: -1},
	} {
		_, err := redis.Open(t.Context(), o)
		var e *driver.Error
		if !errors.As(err, &e) || e.Hint == "" || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want one that says %q", err, says)
		}
	}
	_, err := redis.Open(t.Context(), redis.Options{URL: "redis://:secret@127.0.0.1:1"})
	if !errors.Is(err, driver.ErrNotApplied) || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody there: %v", err)
	}
}
