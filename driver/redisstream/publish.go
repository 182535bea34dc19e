package redisstream

import (
	"context"
	"errors"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Publish stores messages: one script for those of one partition.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	rs := make([]driver.Receipt, len(msgs))
	if err := d.shell.RefusePublish(ctx, o); err != nil {
		return rs, refusal.All(rs, err)
	}
	p := &publication{d: d, o: o, msgs: msgs, rs: rs, turn: d.shell.Count()}
	if o.Atomic && len(msgs) > 0 {
		if err := p.checkAtomic(ctx); err != nil {
			return rs, refusal.All(rs, err)
		}
	}
	p.run(ctx)
	return rs, refusal.Of(rs)
}

// publication is one call of Publish, or the follow-ups of a settlement.
type publication struct {
	d     *Driver
	o     driver.PublishOptions
	msgs  []*driver.Message
	rs    []driver.Receipt
	turn  uint64
	force bool // whatever the bounds say

	lost redisshell.Lost // topics that could not be found
}

// find returns a topic. One that cannot be found stays so for the whole call, or later messages of a key would be
// stored without those before them.
func (p *publication) find(ctx context.Context, name string) (*topic, error) {
	if err := p.lost.Refuse(name); err != nil {
		return nil, err
	}
	t, err := p.d.ensure(ctx, name, 0)
	p.lost.Note(name, err)
	return t, err
}

// checkAtomic refuses what is not one step.
func (p *publication) checkAtomic(ctx context.Context) error {
	return redisshell.CheckAtomic("partition", p.msgs, p.d.caps.MaxBody, func(m *driver.Message) (int, error) {
		t, err := p.d.ensure(ctx, m.Topic, 0)
		if err != nil {
			return 0, err
		}
		return t.partFor(m, p.turn).index, nil
	})
}

// run sends the messages, each partition's in their order.
func (p *publication) run(ctx context.Context) {
	open := map[*partition]*partitionPublish{}
	var order []*partitionPublish
	for i, m := range p.msgs {
		if p.rs[i].Err = m.CheckPublish(p.d.caps.MaxBody); p.rs[i].Err != nil {
			continue
		}
		t, err := p.find(ctx, m.Topic)
		if err != nil {
			p.rs[i].Err = err
			continue
		}
		part := t.partFor(m, p.turn)
		x := open[part]
		if x == nil || !p.o.Atomic && len(x.at) >= redisshell.PublishAtOnce {
			x = &partitionPublish{topic: t, part: part}
			open[part] = x
			order = append(order, x)
		}
		x.add(i, m)
	}
	p.sendAll(ctx, order)
}

// sendAll sends all: those of different partitions in one round trip, those of one partition one after the other.
func (p *publication) sendAll(ctx context.Context, all []*partitionPublish) {
	for len(all) > 0 {
		var now, later []*partitionPublish
		var calls []*scriptCall
		busy := make(map[*partition]bool, len(all))
		for _, x := range all {
			if busy[x.part] || p.o.Level.Replicas() > 0 && len(now) > 0 {
				later = append(later, x)
				continue
			}
			busy[x.part] = true
			x.encode(p.msgs, p.flags())
			now, calls = append(now, x), append(calls, &scriptCall{part: x.part, script: p.scriptOf(x), args: x.args})
		}
		if p.o.Level.Replicas() == 0 {
			p.d.runAll(ctx, calls)
		} else {
			calls[0].reply, calls[0].err = now[0].part.runAt(ctx, p.o.Level, calls[0].script, calls[0].args)
		}
		for i, x := range now {
			part := x.part // of a topic that is made anew meanwhile it is another
			if err := p.finish(ctx, x, calls[i]); err != nil {
				later = p.leave(later, part, redisshell.StayBehind(err))
			}
		}
		all = later
	}
}

// leave gives up what would go to a partition after what was not stored.
func (p *publication) leave(all []*partitionPublish, part *partition, err error) []*partitionPublish {
	return slices.DeleteFunc(all, func(x *partitionPublish) bool {
		if x.part == part {
			p.fill(x, nil, err)
		}
		return x.part == part
	})
}

func (p *publication) flags() string {
	flags := ""
	if p.force {
		flags += "f"
	}
	if p.o.Atomic {
		flags += "a"
	}
	return flags
}

func (p *publication) scriptOf(x *partitionPublish) *script {
	if x.plain {
		return &p.d.scripts.publish
	}
	return &p.d.scripts.store
}

// finish fills in the receipts of what went to a partition, when it is stored.
func (p *publication) finish(ctx context.Context, x *partitionPublish, c *scriptCall) error {
	results, err := p.deliver(ctx, x, c)
	p.fill(x, results, err)
	return err
}

func (p *publication) fill(x *partitionPublish, results []string, err error) {
	for n, i := range x.at {
		if err != nil {
			p.rs[i] = driver.Receipt{ID: p.msgs[i].ID, Err: err}
			continue
		}
		p.rs[i] = x.receipt(p.msgs[i].ID, results[n])
	}
}

// deliver reads the answer of a partition, and sends it again where something has to be done before.
func (p *publication) deliver(ctx context.Context, x *partitionPublish, c *scriptCall) ([]string, error) {
	reply, err := c.reply, c.err
	for range staleTries {
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
			x.encode(p.msgs, p.flags())
		case "nogroup":
			err = p.d.prepare(ctx, x.topic)
		case "stale":
			err = redisshell.ErrStale
		}
		if errors.Is(err, redisshell.ErrStale) {
			err = p.refresh(ctx, x)
		}
		if err == nil {
			reply, err = x.part.runAt(ctx, p.o.Level, p.scriptOf(x), x.args)
		}
	}
	return nil, redisshell.ErrStale
}

// refresh finds the partition of a topic that was made anew. Where its number of partitions changed, it cannot go.
func (p *publication) refresh(ctx context.Context, x *partitionPublish) error {
	t, err := p.d.remake(ctx, x.topic)
	if err != nil {
		return err
	}
	if len(t.parts) != len(x.topic.parts) {
		return redisshell.ErrStale
	}
	x.topic, x.part = t, t.parts[x.part.index]
	return nil
}
