package redisstream

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

type script = redisconn.Script

// scripts are all operations, put together for one version of the server.
type scripts struct {
	create, publish, store, claim, book, begin, ack, settle, extend, own, leave, group, ungroup, drop, configure script
	get, browse, stats, del, move, purge, reset, invalid, audit, progress, pending, span, trim, split            script
}

func newScripts(flags bool) *scripts {
	l := redisconn.Library{Files: luaFiles, Flags: flags, Frees: "redis.call('UNLINK', KEYS[1] .. ':none')"}
	return &scripts{
		create: l.Plain("create"), publish: l.Plain("publish"), store: l.Plain("store"), claim: l.Relief("claim"),
		book: l.Relief("book"), begin: l.Relief("begin"), ack: l.Relief("ack"), settle: l.Relief("settle"),
		extend: l.Relief("extend"), own: l.Relief("own"), leave: l.Relief("leave"), group: l.Plain("group"),
		ungroup: l.Relief("ungroup"), drop: l.Relief("drop"), configure: l.Relief("configure"), get: l.Relief("get"),
		browse: l.Relief("browse"), stats: l.Relief("stats"), del: l.Relief("delete"), move: l.Relief("move"),
		purge: l.Relief("purge"), reset: l.Relief("reset"), invalid: l.Relief("invalid"), audit: l.Relief("audit"),
		progress: l.Relief("progress"), pending: l.Relief("pending"), span: l.Relief("span"), trim: l.Relief("trim"),
		split: l.Relief("split"),
	}
}

// run calls a script of a partition.
func (p *partition) run(ctx context.Context, s *script, args ...any) (redisconn.Reply, error) {
	return p.runAt(ctx, 0, s, args)
}

// runAt calls a script at a durability level: for replicated(n) it waits until n replicas have it.
func (p *partition) runAt(ctx context.Context, level driver.Durability, s *script,
	args []any) (reply redisconn.Reply, err error) {
	if n := level.Replicas(); n > 0 {
		reply, err = s.RunReplicated(ctx, p.d.client, n, p.keys(), append([]any{p.of}, args...)...)
	} else {
		reply, err = s.Run(ctx, p.d.client, p.keys(), append([]any{p.of}, args...)...)
	}
	if err == nil && len(reply) == 0 {
		err = reply.ErrShape(s.Name)
	}
	return reply, err
}

// scriptCall is one call of a script, and what came of it.
type scriptCall struct {
	part   *partition
	script *script
	args   []any
	reply  redisconn.Reply
	err    error
}

// runAll makes calls in one round trip.
func (d *Driver) runAll(ctx context.Context, calls []*scriptCall) {
	if len(calls) == 1 {
		c := calls[0]
		c.reply, c.err = c.part.run(ctx, c.script, c.args...)
		return
	}
	if len(calls) == 0 {
		return
	}
	results := make([]*goredis.Cmd, len(calls))
	_, _ = d.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, c := range calls {
			results[i] = c.script.In(ctx, p, c.part.keys(), append([]any{c.part.of}, c.args...)...)
		}
		return nil
	})
	var failed error
	for i, c := range calls {
		if goredis.HasErrorPrefix(results[i].Err(), "NOSCRIPT") {
			c.reply, c.err = c.part.run(ctx, c.script, c.args...)
			continue
		}
		c.reply, c.err = results[i].Slice()
		if c.err = redisconn.Classify(c.err); c.err != nil {
			failed = c.err
		} else if len(c.reply) == 0 {
			c.err = c.reply.ErrShape(c.script.Name)
		}
	}
	if failed != nil {
		redisconn.Relocate(ctx, d.client, failed)
	}
}
