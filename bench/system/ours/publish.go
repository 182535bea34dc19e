package ours

import (
	"context"
	"errors"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/bench/system"
)

// publisher reuses its messages, as a careful program does: a broker keeps neither them nor their bodies.
type publisher struct {
	session *session // its broker is another one after a restart
	one     ferry.Message
	many    []ferry.Message
	refs    []*ferry.Message

	mu  sync.Mutex
	err error // of asynchronous publishes
}

func (p *publisher) KeepsBodies() bool { return false }

func set(to *ferry.Message, m system.Message) {
	to.Topic, to.Body, to.Key, to.Delay = topic, m.Body, m.Key, m.Delay
}

func (p *publisher) Publish(ctx context.Context, m system.Message) error {
	set(&p.one, m)
	_, err := p.session.broker.Publish(ctx, &p.one)
	return err
}

func (p *publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	if len(p.many) < len(ms) {
		p.many = make([]ferry.Message, len(ms))
		p.refs = make([]*ferry.Message, len(ms))
		for i := range p.many {
			p.refs[i] = &p.many[i]
		}
	}
	for i, m := range ms {
		set(&p.many[i], m)
	}
	_, err := p.session.broker.PublishBatch(ctx, p.refs[:len(ms)])
	return err
}

func (p *publisher) PublishAsync(ctx context.Context, m system.Message) error {
	set(&p.one, m)
	return p.session.broker.PublishFunc(ctx, &p.one, p.received)
}

func (p *publisher) received(r ferry.Receipt) {
	if r.Err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = r.Err
	}
}

func (p *publisher) Flush(ctx context.Context) error {
	err := p.session.broker.Flush(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(err, p.err)
}
