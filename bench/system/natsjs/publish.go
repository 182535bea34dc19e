package natsjs

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ferrymq/ferry/bench/system"
)

func (n *session) Publisher() system.Publisher { return &publisher{js: n.js, scheduled: &n.scheduled} }

type publisher struct {
	js        jetstream.JetStream
	scheduled *atomic.Uint64
	futures   []jetstream.PubAckFuture // of a batch, or of async publishes since the last look
}

// lookEvery bounds how many async acknowledgements wait to be looked at.
const lookEvery = 1000

// KeepsBodies is false: a body is written into the connection's buffer before a publish returns. It stays readable to
// the future, which nobody here asks for it.
func (p *publisher) KeepsBodies() bool { return false }

func (p *publisher) Publish(ctx context.Context, m system.Message) error {
	if m.Delay > 0 {
		return p.schedule(ctx, m)
	}
	_, err := p.js.Publish(ctx, workSubject, m.Body)
	return err
}

func (p *publisher) schedule(ctx context.Context, m system.Message) error {
	msg := nats.NewMsg(laterSubject + strconv.FormatUint(p.scheduled.Add(1), 36))
	msg.Data = m.Body
	// WithScheduleAt would cut the time to whole seconds; the header takes fractions.
	msg.Header.Set("Nats-Schedule", "@at "+time.Now().Add(m.Delay).UTC().Format(time.RFC3339Nano))
	msg.Header.Set("Nats-Schedule-Target", workSubject)
	_, err := p.js.PublishMsg(ctx, msg)
	return err
}

func (p *publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	for _, m := range ms {
		if err := p.enqueue(m); err != nil {
			return err
		}
	}
	return p.Flush(ctx)
}

func (p *publisher) PublishAsync(ctx context.Context, m system.Message) error {
	if len(p.futures) >= lookEvery {
		if err := p.look(ctx, len(p.futures)/2); err != nil {
			return err
		}
	}
	return p.enqueue(m)
}

func (p *publisher) enqueue(m system.Message) error {
	f, err := p.js.PublishAsync(workSubject, m.Body)
	if err == nil {
		p.futures = append(p.futures, f)
	}
	return err
}

func (p *publisher) Flush(ctx context.Context) error { return p.look(ctx, len(p.futures)) }

// look waits for the acknowledgements of the oldest n.
func (p *publisher) look(ctx context.Context, n int) error {
	for _, f := range p.futures[:n] {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.futures = append(p.futures[:0], p.futures[n:]...)
	return nil
}
