package notify

import (
	"context"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
)

// Shed says what becomes of unimportant messages while many wait, so that the important ones are not late. The zero
// value sheds nothing.
type Shed struct {
	// Backlog is from how many waiting targets on. Zero: never.
	Backlog int64
	// Below sheds messages of a lower priority than this one. Defaults to Normal: low ones.
	Below Priority
	// Delay has them wait for so long instead of failing with code SHED.
	Delay time.Duration
}

func (s Shed) check() error {
	if s.Backlog < 0 || s.Delay < 0 || !s.Below.Valid() {
		return invalid("use a positive backlog and delay, and one of the priorities",
			"the rule for shedding is out of range")
	}
	return nil
}

// backlog is what waits in the hub's topic, asked at most once a second.
type backlog struct {
	mu    sync.Mutex
	at    time.Time
	waits int64
}

// of returns what waits.
func (b *backlog) of(ctx context.Context, broker *ferry.Broker, topic string) int64 {
	b.mu.Lock()
	waits, fresh := b.waits, !b.at.IsZero() && time.Since(b.at) < time.Second
	b.mu.Unlock()
	if fresh {
		return waits
	}
	stats, err := broker.Driver().Stats(ctx, topic)
	if err != nil {
		return waits // a topic that does not exist yet, or a broker that is away: the publish will tell
	}
	waits = 0
	for _, g := range stats.Groups {
		waits += g.Ready + g.Inflight + g.Waiting
	}
	b.mu.Lock()
	b.at, b.waits = time.Now(), waits
	b.mu.Unlock()
	return waits
}

// shed applies the rule to a message: its receipts then say so, or it waits longer.
func (h *Hub) shed(ctx context.Context, p *plan) {
	rule := h.o.Shed
	if rule.Backlog == 0 || p.priority >= rule.Below || h.backlog.of(ctx, h.broker, h.o.Topic) < rule.Backlog {
		return
	}
	for i := range p.jobs {
		h.count(p.jobs[i].target().Channel).shed.Add(1)
	}
	if rule.Delay > 0 {
		if later := time.Now().Add(rule.Delay); later.After(p.at) {
			p.at = later
		}
		return
	}
	why := &Error{Code: CodeShed, Text: "low priority was shed, because many notifications wait", Hint: "send it later"}
	for i := range p.receipts {
		p.receipts[i].Status, p.receipts[i].Code, p.receipts[i].Error = Failed, why.Code, why.Error()
	}
	p.jobs = nil
	h.log.WarnContext(ctx, "a notification was shed", "id", p.id, "targets", len(p.receipts))
}
