package redis

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

const (
	publishAtOnce = redisshell.PublishAtOnce
	publishBytes  = 8 << 20
)

// Publish stores messages: one script for those of one topic shard.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	p := d.publication(msgs, o)
	return p.Run(ctx, p.run)
}

// publication is what goes to shards.
type publication struct {
	redisshell.Publication[*shard]
	d        *Driver
	replaces string // the undecodable entry that this replaces,
	at       *shard // and where that is
}

func (d *Driver) publication(msgs []*driver.Message, o driver.PublishOptions) *publication {
	return &publication{d: d, Publication: redisshell.NewPublication(d.shell, d.topics, msgs, o, d.caps.MaxBody)}
}

// run sends the messages, each topic shard's in their order.
func (p *publication) run(ctx context.Context) {
	open := map[string]*shardPublish{}
	order := make([]*shardPublish, 0, 4)
	p.Each(ctx, func(i int, m *driver.Message, t *topic) {
		s := p.at
		if s == nil {
			s = t.For(m, p.Turn)
		}
		x := open[s.tag]
		if x == nil {
			room := 0
			if len(order) == 0 { // the only one, as nearly always
				room = min(len(p.Messages), publishAtOnce)
			}
			x = newShardPublish(s, p.d.arenas.take(), room)
			open[s.tag] = x
			order = append(order, x)
		}
		x.add(i, m)
		if !p.Options.Atomic && (len(x.at) >= publishAtOnce || x.bytes >= publishBytes) {
			p.send(ctx, x)
			*x = *newShardPublish(x.shard, x.spent(), min(len(p.Messages)-i-1, publishAtOnce))
		}
	})
	for _, x := range order {
		p.send(ctx, x)
		p.d.arenas.giveBack(x.spent())
	}
}

// send publishes what goes to one shard, and fills in its receipts.
func (p *publication) send(ctx context.Context, x *shardPublish) {
	if err := p.Refuse(x.shard.tag); err != nil || len(x.at) == 0 {
		p.Fail(x.at, err)
		return
	}
	reply, err := p.deliver(ctx, x)
	x.shard.moved.Add(int64(len(x.at)))
	if err == nil {
		err = p.receipts(x, reply)
	}
	if err != nil {
		x.failed = true
		p.Fail(x.at, err)
		p.Note(x.shard.tag, err)
	}
}

func (p *publication) deliver(ctx context.Context, x *shardPublish) (redisconn.Reply, error) {
	r := p.d.requests.take()
	defer p.d.requests.giveBack(r)
	for range staleTries {
		g := x.shard.groups()
		if len(g.names) == 0 {
			if err := p.d.topics.Prepare(ctx, x.shard.t); err != nil {
				return nil, err
			}
			g = x.shard.groups()
		}
		reply, err := p.ship(ctx, x, g, r.name())
		if err != nil || reply.Text(0) != "stale" {
			return reply, err
		}
		if reply.Text(1) == x.shard.of {
			x.shard.learn(reply.Text(2), reply.Text(3))
			continue
		}
		// deleted, or made anew with other shards
		if x.shard, err = p.d.topics.AgainPart(ctx, x.shard.t, x.shard.index); err != nil {
			return nil, err
		}
	}
	return nil, driver.NewError(driver.ErrNotApplied, fmt.Sprintf("topic %q keeps changing", x.shard.t.Name),
		"publish again", nil)
}

// ship sends it once: what is plain by the script for that, unless it has refused.
func (p *publication) ship(ctx context.Context, x *shardPublish, g *groups, request string) (redisconn.Reply, error) {
	if x.isPlain() && p.replaces == "" && !x.slow && !x.shard.bounded.Load() {
		args := make([]any, 0, 4+2*len(x.at))
		args = appendArgs(appendArgs(append(args, x.shard.of, g.epoch, request, len(x.at)), x.ids), x.data)
		reply, err := p.d.runAt(ctx, p.Options.Level, &p.d.scripts.plain, g.plain, args)
		if err != nil || reply.Text(0) != "slow" {
			return reply, err
		}
		x.slow = true
		if reply.Text(1) == "bound" {
			x.shard.bounded.Store(true)
		}
	}
	args := make([]any, 0, 7+2*len(x.at)+len(x.more))
	args = x.appendTo(append(args, x.shard.of, g.epoch), request, p.Flags(), p.replaces)
	return p.d.runAt(ctx, p.Options.Level, &p.d.scripts.publish, g.keys, args)
}
