package redisstream

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Publish stores messages: one script for those of one partition.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	p := d.publication(msgs, o)
	return p.Run(ctx, p.run)
}

// publication is what goes to partitions.
type publication struct {
	redisshell.Publication[*partition]
	d *Driver
}

func (d *Driver) publication(msgs []*driver.Message, o driver.PublishOptions) *publication {
	return &publication{d: d, Publication: redisshell.NewPublication(d.shell, d.topics, msgs, o, d.caps.MaxBody)}
}

// run sends the messages, each partition's in their order.
func (p *publication) run(ctx context.Context) {
	open := map[*partition]*partitionPublish{}
	order := make([]*partitionPublish, 0, 4)
	p.Each(ctx, func(i int, m *driver.Message, t *topic) {
		part := t.For(m, p.Turn)
		x := open[part]
		if x == nil || !p.Options.Atomic && len(x.at) >= redisshell.PublishAtOnce {
			x = &partitionPublish{part: part, plain: true}
			open[part] = x
			order = append(order, x)
		}
		x.add(i, m)
	})
	p.sendAll(ctx, order)
}

// sendAll sends all: those of different partitions in one round trip, those of one partition one after the other.
func (p *publication) sendAll(ctx context.Context, all []*partitionPublish) {
	for len(all) > 0 {
		var now, later []*partitionPublish
		var calls []*scriptCall
		busy := make(map[*partition]bool, len(all))
		for _, x := range all {
			if err := p.Refuse(x.part.key); err != nil {
				p.Fail(x.at, err)
				continue
			}
			if busy[x.part] || p.Options.Level.Replicas() > 0 && len(now) > 0 {
				later = append(later, x)
				continue
			}
			busy[x.part] = true
			x.encode(p.Messages, p.Flags())
			now, calls = append(now, x), append(calls, &scriptCall{part: x.part, script: x.script, args: x.args,
				level: p.Options.Level})
		}
		_ = p.d.runAll(ctx, calls)
		for i, x := range now {
			p.Note(x.part.key, p.finish(ctx, x, calls[i]))
		}
		all = later
	}
}

// finish fills in the receipts of what went to a partition, when it is stored.
func (p *publication) finish(ctx context.Context, x *partitionPublish, c *scriptCall) error {
	results, err := p.deliver(ctx, x, c)
	if err != nil {
		p.Fail(x.at, err)
		return err
	}
	for n, i := range x.at {
		if x.plain {
			p.Receipts[i] = driver.Receipt{ID: p.Messages[i].ID, Ref: x.part.ref(results[n])}
		} else {
			p.Receipts[i] = redisshell.Receipt(p.Messages[i], results[n], x.part.ref)
		}
	}
	return nil
}

// deliver reads the answer of a partition, and sends it again where something has to be done before.
func (p *publication) deliver(ctx context.Context, x *partitionPublish, c *scriptCall) ([]string, error) {
	reply, err := c.reply, c.err
	for range redisshell.StaleTries {
		if err != nil {
			return nil, err
		}
		switch reply.Text(0) {
		case "ok", "plain":
			results := reply.Texts(1)
			if len(results) != len(x.at) {
				return nil, reply.ErrShape("publish")
			}
			return results, nil
		case "slow":
			x.plain = false
			x.encode(p.Messages, p.Flags())
		case "nogroup":
			err = p.d.topics.Prepare(ctx, x.part.t)
		case "stale":
			err = redisshell.ErrStale
		}
		if errors.Is(err, redisshell.ErrStale) {
			x.part, err = p.d.topics.AgainPart(ctx, x.part.t, x.part.index)
		}
		if err == nil {
			reply, err = x.part.runAt(ctx, p.Options.Level, x.script, x.args)
		}
	}
	return nil, redisshell.ErrStale
}
