package redisshell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/refusal"
)

// PublishAtOnce is how many messages one script stores, so that it blocks the server for a few milliseconds.
const PublishAtOnce = 250

// publishAtomicly is how many messages an atomic publish may have.
const publishAtomicly = 1000

// Publication is one call of Publish, or the follow-ups of a settlement.
type Publication[P any] struct {
	Messages []*driver.Message
	Receipts []driver.Receipt
	Options  driver.PublishOptions
	Turn     uint64 // decides where messages go that nothing binds
	Force    bool   // whatever the bounds say

	topics  *Topics[P]
	maxBody int
	// topics, and parts of them, that could not be reached, by their names: what follows for them in the same call is not
	// sent, or later messages of a key would be stored without those before them
	lost map[string]error
}

// NewPublication returns one of messages whose bodies have so many bytes at most.
func NewPublication[S Subscription, P any](s *Shell[S], topics *Topics[P], msgs []*driver.Message,
	o driver.PublishOptions, maxBody int) Publication[P] {
	return Publication[P]{Messages: msgs, Receipts: make([]driver.Receipt, len(msgs)), Options: o, Turn: s.Count(),
		topics: topics, maxBody: maxBody}
}

// Run sends the messages, unless nothing can be published, and returns the receipts and their errors as one.
func (p *Publication[P]) Run(ctx context.Context, send func(context.Context)) ([]driver.Receipt, error) {
	err := p.topics.refusePublish(ctx, p.Options)
	if err == nil && p.Options.Atomic {
		err = p.checkAtomic(ctx)
	}
	if err != nil {
		return p.Receipts, refusal.All(p.Receipts, err)
	}
	send(ctx)
	return p.Receipts, refusal.Of(p.Receipts)
}

// checkAtomic refuses messages that do not belong to one part of one topic, so that they cannot be stored as one step.
func (p *Publication[P]) checkAtomic(ctx context.Context) error {
	unsupported := func(text, hint string) error { return driver.NewError(driver.ErrUnsupported, text, hint, nil) }
	if len(p.Messages) > publishAtomicly {
		return unsupported(fmt.Sprintf("%d messages are too many for one step", len(p.Messages)),
			fmt.Sprintf("publish at most %d atomically", publishAtomicly))
	}
	for _, m := range p.Messages {
		if err := m.CheckPublish(p.maxBody); err != nil {
			return err
		}
	}
	first, what := 0, p.topics.kind.Part
	for i, m := range p.Messages {
		if m.Topic != p.Messages[0].Topic {
			return unsupported("an atomic publish reaches over topics", "publish to one topic, or not atomically")
		}
		t, err := p.topics.Ensure(ctx, m.Topic, 0)
		if err != nil {
			return err
		}
		part := partFor(m, p.Turn, len(t.Parts))
		if i > 0 && part != first {
			return unsupported(fmt.Sprintf("an atomic publish reaches over %ss of topic %q", what, m.Topic),
				"give the messages one key, or use one "+what)
		}
		first = part
	}
	return nil
}

// Each tells the topic of every message that may be published. The others have got their receipts.
func (p *Publication[P]) Each(ctx context.Context, send func(i int, m *driver.Message, t *Topic[P])) {
	for i, m := range p.Messages {
		var t *Topic[P]
		err := m.CheckPublish(p.maxBody)
		if err == nil {
			err = p.Refuse(m.Topic)
		}
		if err == nil {
			t, err = p.topics.Ensure(ctx, m.Topic, 0)
			p.Note(m.Topic, err)
		}
		if p.Receipts[i].Err = err; err == nil {
			send(i, m, t)
		}
	}
}

// Flags tell a script how to store: f whatever the bounds say, a all or nothing.
func (p *Publication[P]) Flags() (flags string) {
	if p.Force {
		flags = "f"
	}
	if p.Options.Atomic {
		flags += "a"
	}
	return flags
}

// Fail says of some messages why they were not stored.
func (p *Publication[P]) Fail(at []int, err error) {
	for _, i := range at {
		p.Receipts[i] = driver.Receipt{ID: p.Messages[i].ID, Err: err}
	}
}

// Note notes why a topic or a part could not be reached, if it could not.
func (p *Publication[P]) Note(where string, err error) {
	if err == nil {
		return
	}
	if p.lost == nil {
		p.lost = map[string]error{}
	}
	p.lost[where] = err
}

// Refuse says why nothing more is sent there, or nil.
func (p *Publication[P]) Refuse(where string) error {
	if err := p.lost[where]; err != nil {
		return driver.NewError(driver.ErrNotApplied, "a message before it in the call was not stored",
			"publish them again in the same order", err)
	}
	return nil
}

// Receipt reads what a script says of a message: "s" and its place, "l" when it is due later, "d", the place of the
// first one and its id if that may be another, "m" or "b" when the bound of messages or bytes is reached.
func Receipt(m *driver.Message, said string, ref func(place string) driver.Ref) driver.Receipt {
	r := driver.Receipt{ID: m.ID}
	at, first, _ := strings.Cut(said[min(1, len(said)):], " ")
	switch said[:min(1, len(said))] {
	case "s":
		r.Ref = ref(at)
	case "l":
	case "d":
		r.ID, r.Ref, r.Duplicate = cmp.Or(first, m.ID), ref(at), true
	case "m", "b":
		r.Err = driver.NewError(driver.ErrFull, fmt.Sprintf("topic %q has reached its bound", m.Topic),
			"publish again when consumers have caught up, or raise the bound", nil)
	default:
		r.Err = redisconn.Reply{said}.ErrShape("publish")
	}
	return r
}

// Unfull hides that a server without memory refused follow-ups behind what it means for a settlement.
func Unfull(err error) error {
	if errors.Is(err, driver.ErrFull) {
		return driver.NewError(driver.ErrNotApplied, "the follow-ups could not be stored",
			"settle again when the server has room", err)
	}
	return err
}
