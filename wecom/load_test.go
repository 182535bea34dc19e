package wecom_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/guard"
	guardredis "github.com/ferrymq/ferry/guard/redis"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/stall"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/worker"
)

// crowd is some users who write as often as each other, one after the other.
type crowd struct {
	name   string
	users  int
	minute int // messages of each in a minute
}

var (
	calm   = crowd{"calm", 1000, 2}
	lively = crowd{"lively", 100, 60}
	robots = crowd{"robots", 10, 1000}
)

// write publishes what a crowd writes until ctx ends.
func (c crowd) write(ctx context.Context, b *ferry.Broker) {
	gap := time.Minute / time.Duration(c.users*c.minute)
	for i, due := 0, time.Now(); ctx.Err() == nil; i, due = i+1, due.Add(gap) {
		time.Sleep(time.Until(due))
		user := ferry.Key(fmt.Sprint(c.name, i%c.users))
		if _, err := ferry.Publish(ctx, b, wecom.Topic, wecom.Message{Kind: wecom.KindText}, user); err != nil {
			return
		}
	}
}

// load is one node with a broker and the guards of customer service.
type load struct {
	*testing.T
	url   string
	store guard.Store
	span  time.Duration
	slots int
	waits func(m *ferry.Msg[wecom.Message]) time.Duration
}

// run returns the p99 of what messages of calm users took while others write too, and how many messages of the others
// were handled. The first window does not count: the limit lets all of it pass.
func (l *load) run(others ...crowd) (p99 time.Duration, handled int) {
	l.Helper()
	b, err := open.URL(context.Background(), l.url)
	l.ok(err)
	p, err := wecom.New(b, wecom.Config{Corp: "corp", Secret: "secret"}, wecom.Options{})
	l.ok(err)
	layers, err := p.Protection(l.store, nil)
	l.ok(err)
	var mu sync.Mutex
	var took []time.Duration
	start := time.Now()
	w := worker.New(b, worker.Options{Concurrency: l.slots})
	p.Handle(w, layers, func(_ context.Context, m *ferry.Msg[wecom.Message]) error {
		time.Sleep(50 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !strings.HasPrefix(m.Key, calm.name):
			handled++
		case time.Since(start) > 11*time.Second:
			took = append(took, l.waits(m))
		}
		return nil
	})
	ctx, end := context.WithTimeout(context.Background(), l.span)
	defer end()
	var all sync.WaitGroup
	for _, c := range append(others, calm) {
		all.Go(func() { c.write(ctx, b) })
	}
	l.ok(w.Run(ctx))
	all.Wait()
	p.Close()
	l.ok(b.Close(context.Background()))
	slices.Sort(took)
	return took[len(took)*99/100], handled
}

func (l *load) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// compare fails if calm users notice noisy ones, or if those are not served first and blocked then.
func (l *load) compare() {
	l.Helper()
	alone, _ := l.run()
	among, handled := l.run(lively, robots)
	if among > alone*12/10 {
		l.Errorf("p99 %v among noisy users, %v without them", among, alone)
	}
	noisy := lively.users + robots.users
	if handled < noisy*wecom.NormalLimit {
		l.Errorf("%d messages of %d noisy users were handled, want %d of each at least", handled, noisy, wecom.NormalLimit)
	}
	if n := l.blocked(); n != noisy {
		l.Errorf("%d users are blocked in the end, want the %d noisy ones", n, noisy)
	}
	l.Logf("p99 %v without noisy users, %v among them; %d messages of theirs", alone, among, handled)
}

// blocked is how many users are blocked.
func (l *load) blocked() int {
	l.Helper()
	page, err := l.store.List(context.Background(), guard.Query{Kind: guard.KindBlocked, Max: 1000})
	l.ok(err)
	return len(page.Keys)
}

// TestNoisyUsersCostOthersNothing runs the loads that the limits are made for: a thousand users who write twice a
// minute do not notice a hundred who write every second and ten robots, which are blocked.
func TestNoisyUsersCostOthersNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := load{T: t, url: "memory://", store: guard.NewMemory(guard.MemoryOptions{}), span: 2 * time.Minute, slots: 8,
			waits: func(m *ferry.Msg[wecom.Message]) time.Duration { return time.Since(m.PublishedAt) }}
		l.compare()
	})
}

// TestNoisyUsersOnRedis is the same on real servers, a part of the torture: it needs minutes and a machine for itself.
func TestNoisyUsersOnRedis(t *testing.T) {
	if tortured() == 0 {
		t.Skip("make torture FAULT=wecom runs it")
	}
	server := redistest.Single(t, redistest.Options{AOF: "everysec"})
	for _, scheme := range []string{"redis", "redisstream"} {
		t.Run(scheme, func(t *testing.T) {
			prefix := "load" + rand.Text()
			store, err := guardredis.Open(t.Context(), guardredis.Options{URL: server.URL(), Prefix: prefix})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = store.Close(context.Background()) }()
			machine := stall.Watch(t)
			l := load{T: t, url: strings.Replace(server.URL(), "redis", scheme, 1) + "?prefix=" + prefix, store: store,
				span: time.Minute, slots: 32, // a slot is held during the round trips of the guards, too
				waits: func(m *ferry.Msg[wecom.Message]) time.Duration { return machine.Elapsed(m.PublishedAt) }}
			l.compare()
		})
	}
}
