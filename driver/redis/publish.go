package redis

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/refusal"
)

const (
	publishAtOnce = redisshell.PublishAtOnce
	publishBytes  = 8 << 20
)

// Publish stores messages: one script for those of one topic shard.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	rs := make([]driver.Receipt, len(msgs))
	if err := d.shell.RefusePublish(ctx, o); err != nil {
		return rs, refusal.All(rs, err)
	}
	if len(msgs) == 0 {
		return rs, nil
	}
	p := &publication{d: d, o: o, msgs: msgs, rs: rs, turn: d.shell.Count()}
	if o.Atomic {
		if err := p.checkAtomic(ctx); err != nil {
			return rs, refusal.All(rs, err)
		}
	}
	p.run(ctx)
	return rs, refusal.Of(rs)
}

// publication is one call of Publish, or the follow-ups of a settlement.
type publication struct {
	d        *Driver
	o        driver.PublishOptions
	msgs     []*driver.Message
	rs       []driver.Receipt
	turn     uint64
	force    bool   // whatever the bounds say
	replaces string // the undecodable entry that this replaces,
	at       *shard // and where that is

	lost redisshell.Lost // topics and shards, by name and by tag
}

// checkAtomic refuses what is not one step.
func (p *publication) checkAtomic(ctx context.Context) error {
	return redisshell.CheckAtomic("shard", p.msgs, p.d.caps.MaxBody, func(m *driver.Message) (int, error) {
		t, err := p.d.ensure(ctx, m.Topic, 0)
		if err != nil {
			return 0, err
		}
		return t.shardFor(m, p.turn).index, nil
	})
}

// run sends the messages, each topic shard's in their order.
func (p *publication) run(ctx context.Context) {
	open := map[string]*shardPublish{}
	var order []*shardPublish
	send := func(x *shardPublish) {
		if err := p.lost.Refuse(x.shard.tag); err != nil {
			p.fail(x.at, err)
		} else if len(x.at) > 0 {
			p.send(ctx, x)
		}
	}
	for i, m := range p.msgs {
		if p.rs[i].Err = m.CheckPublish(p.d.caps.MaxBody); p.rs[i].Err != nil {
			continue
		}
		t, err := p.find(ctx, m.Topic)
		if err != nil {
			p.rs[i].Err = err
			continue
		}
		s := p.at
		if s == nil {
			s = t.shardFor(m, p.turn)
		}
		x := open[s.tag]
		if x == nil {
			room := 0
			if len(order) == 0 { // the only one, as nearly always
				room = min(len(p.msgs), publishAtOnce)
			}
			x = newShardPublish(t, s, p.d.arenas.take(), room)
			open[s.tag] = x
			order = append(order, x)
		}
		x.add(i, m)
		if !p.o.Atomic && (len(x.at) >= publishAtOnce || x.bytes >= publishBytes) {
			send(x)
			*x = *newShardPublish(x.topic, x.shard, x.spent(), min(len(p.msgs)-i-1, publishAtOnce))
		}
	}
	for _, x := range order {
		send(x)
		p.d.arenas.giveBack(x.spent())
	}
}

// send publishes what goes to one shard, and fills in its receipts.
func (p *publication) send(ctx context.Context, x *shardPublish) {
	reply, err := p.deliver(ctx, x)
	x.shard.moved.Add(int64(len(x.at)))
	if err == nil {
		err = p.receipts(x, reply)
	}
	if err != nil {
		x.failed = true
		p.fail(x.at, err)
		p.lost.Note(x.shard.tag, err)
	}
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

func (p *publication) fail(at []int, err error) {
	for _, i := range at {
		p.rs[i] = driver.Receipt{ID: p.msgs[i].ID, Err: err}
	}
}

func (p *publication) deliver(ctx context.Context, x *shardPublish) (redisconn.Reply, error) {
	r := p.d.requests.take()
	defer p.d.requests.giveBack(r)
	for range staleTries {
		g := x.shard.groups()
		if len(g.names) == 0 {
			var err error
			if g, err = p.prepare(ctx, x); err != nil {
				return nil, err
			}
		}
		reply, err := p.ship(ctx, x, g, r.name())
		if err != nil || reply.Text(0) != "stale" {
			return reply, err
		}
		if reply.Text(1) == x.shard.of {
			x.shard.learn(reply.Text(2), reply.Text(3))
			continue
		}
		p.d.topics.Forget(x.topic) // deleted, or made anew with other shards
		if p.o.Atomic && reply.Text(1) != "" {
			break
		}
		t, err := p.d.ensure(ctx, x.topic.name, 0)
		if err != nil {
			return nil, err
		}
		if len(t.shards) != len(x.topic.shards) {
			break
		}
		if _, err := t.shards[x.shard.index].join(ctx, membership{}); err != nil {
			return nil, err
		}
		x.topic, x.shard = t, t.shards[x.shard.index]
	}
	return nil, driver.NewError(driver.ErrNotApplied, fmt.Sprintf("topic %q keeps changing", x.topic.name),
		"publish again", nil)
}

// ship sends it once: what is plain by the script for that, unless it has refused.
func (p *publication) ship(ctx context.Context, x *shardPublish, g *groups, request string) (redisconn.Reply, error) {
	if x.isPlain() && p.replaces == "" && !x.slow && !x.shard.bounded.Load() {
		args := make([]any, 0, 4+2*len(x.at))
		args = appendArgs(appendArgs(append(args, x.shard.of, g.epoch, request, len(x.at)), x.ids), x.data)
		reply, err := p.d.runAt(ctx, p.o.Level, &p.d.scripts.plain, g.plain, args)
		if err != nil || reply.Text(0) != "slow" {
			return reply, err
		}
		x.slow = true
		if reply.Text(1) == "bound" {
			x.shard.bounded.Store(true)
		}
	}
	flags := ""
	if p.force {
		flags += "f"
	}
	if p.o.Atomic {
		flags += "a"
	}
	args := make([]any, 0, 7+2*len(x.at)+len(x.more))
	args = x.appendTo(append(args, x.shard.of, g.epoch), request, flags, p.replaces)
	return p.d.runAt(ctx, p.o.Level, &p.d.scripts.publish, g.keys, args)
}

// prepare makes sure that the shard has a group: those that the first shard has, which gets the default one if it has
// none.
func (p *publication) prepare(ctx context.Context, x *shardPublish) (*groups, error) {
	first, err := x.topic.shards[0].join(ctx, membership{group: driver.DefaultGroup, only: true})
	if err != nil {
		return nil, err
	}
	for _, s := range x.topic.shards[1:] {
		for _, name := range first.names {
			if _, err := s.join(ctx, membership{group: name}); err != nil {
				return nil, err
			}
		}
	}
	return x.shard.groups(), nil
}
