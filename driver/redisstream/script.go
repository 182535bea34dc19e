package redisstream

import (
	"cmp"
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
	args []any) (redisconn.Reply, error) {
	reply, err := s.RunAt(ctx, p.d.client, level, p.keys(), append([]any{p.of}, args...)...)
	return p.shaped(s, reply, err)
}

// runOn calls a script by a connection that the caller has.
func (p *partition) runOn(ctx context.Context, c *goredis.Conn, s *script, args []any) (redisconn.Reply, error) {
	reply, err := s.On(ctx, c, p.keys(), append([]any{p.of}, args...))
	if err != nil {
		redisconn.Relocate(ctx, p.d.client, err)
	}
	return p.shaped(s, reply, err)
}

// shaped refuses an answer without anything in it.
func (p *partition) shaped(s *script, reply redisconn.Reply, err error) (redisconn.Reply, error) {
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
	about  []int             // places of the deliveries that it is about, in the order in which it answers
	level  driver.Durability // of one that is made alone
	reply  redisconn.Reply
	err    error
}

// runAll makes calls in one round trip. They keep their errors; it returns one of them, if any failed.
func (d *Driver) runAll(ctx context.Context, calls []*scriptCall) (failed error) {
	if len(calls) == 1 {
		c := calls[0]
		c.reply, c.err = c.part.runAt(ctx, c.level, c.script, c.args)
		return c.err
	}
	if len(calls) == 0 {
		return nil
	}
	results := make([]*goredis.Cmd, len(calls))
	_, _ = d.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, c := range calls {
			results[i] = c.script.In(ctx, p, c.part.keys(), append([]any{c.part.of}, c.args...)...)
		}
		return nil
	})
	for i, c := range calls {
		reply, err := results[i].Slice()
		if c.reply, c.err = c.part.shaped(c.script, reply, redisconn.Classify(err)); goredis.HasErrorPrefix(err, "NOSCRIPT") {
			c.reply, c.err = c.part.run(ctx, c.script, c.args...)
		}
		failed = cmp.Or(failed, c.err)
	}
	redisconn.Relocate(ctx, d.client, failed)
	return failed
}
