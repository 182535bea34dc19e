package wecom

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

// HandlerTimeout is how long a message may be handled.
const HandlerTimeout = 30 * time.Second

// limits of users by their group: messages in a window, and after how many violations they are blocked, and for how
// long.
var limits = map[string]guard.Rule{
	GroupNormal:     {Limit: 5, Window: 10 * time.Second, Penalty: guard.Penalty{After: 3, Block: time.Hour}},
	GroupVIP:        {Limit: 20, Window: 10 * time.Second, Penalty: guard.Penalty{After: 10, Block: 30 * time.Minute}},
	GroupSuspicious: {Limit: 3, Window: 30 * time.Second, Penalty: guard.Penalty{After: 1, Block: 24 * time.Hour}},
	GroupWhitelist:  {Unlimited: true},
}

// Protection returns the guards of customer service, ready to be used or changed: limits for each group of users, one
// message of a user at a time over all processes, each msgid handled once, and a breaker for what the handler calls.
// Only what a customer wrote counts for the limits, not events or what servicers answered. What is over its limit waits
// in its place; nothing of it becomes a dead letter. Processes that share a store share the limits. Handle puts them in
// front of a handler. The hook may be nil.
func (p *Pipeline) Protection(s guard.Store, hook guard.Hook) (guard.Layers, error) {
	limit, err := guard.NewLimiter(s, guard.LimiterOptions{Hook: hook, Limits: []guard.Limit{{
		Name: "wecom-user", Key: writer, Rule: limits[GroupNormal], Groups: limits,
		Group: func(_ context.Context, user string) string {
			if user == "" {
				return GroupWhitelist
			}
			return p.groupOf(user)
		},
	}}})
	if err != nil {
		return guard.Layers{}, err
	}
	concurrency, err := guard.NewConcurrency(s, guard.ConcurrencyOptions{Name: "wecom-user", Max: 1, Hook: hook})
	if err != nil {
		return guard.Layers{}, err
	}
	dedup, err := guard.NewDedup(s, guard.DedupOptions{Name: "wecom-msgid", Window: p.config.Recognise, Hook: hook})
	if err != nil {
		return guard.Layers{}, err
	}
	breaker, err := guard.NewBreaker(guard.BreakerOptions{
		Name: "wecom-handler", Failures: 100, Open: 30 * time.Second, Probes: 10, Hook: hook,
	})
	return guard.Layers{Limit: limit, Concurrency: concurrency, Dedup: dedup, Breaker: breaker}, err
}

// writer is the customer who wrote a message; "" if it is an event or of a servicer. Those have the customer's key,
// too, and a customer is not blocked for what others do.
func writer(m *ferry.Message) string {
	origin, err := strconv.Atoi(m.Headers[HeaderOrigin])
	if err == nil && (Origin(origin) == FromSystem || Origin(origin) == FromServicer) {
		return ""
	}
	return m.Key
}

// Handler handles one message.
type Handler func(ctx context.Context, m *ferry.Msg[Message]) error

// Kinds handles messages by their kind. What no handler is for is logged and acknowledged.
type Kinds map[Kind]Handler

// Handle is a Handler.
func (k Kinds) Handle(ctx context.Context, m *ferry.Msg[Message]) error {
	if handle := k[m.Value.Kind]; handle != nil {
		return handle(ctx, m)
	}
	slog.InfoContext(ctx, "a message of WeCom has no handler for its kind", "kind", m.Value.Kind, "id", m.ID)
	return nil
}

// Handle registers a handler for messages behind guards.
func (p *Pipeline) Handle(w *worker.Worker, l guard.Layers, handler Handler, opts ...worker.HandlerOption) {
	guarded := []worker.HandlerOption{worker.Use(l.Middleware()...), worker.Timeout(HandlerTimeout)}
	worker.Handle(w, p.config.Topic, handler, append(guarded, opts...)...)
}
