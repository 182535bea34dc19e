package redisstream

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// script is one operation, ready to be called.
type script struct {
	redisconn.Script
	name string
}

// scripts are all operations, put together for one version of the server.
type scripts struct {
	create, publish, store, claim, book, begin, ack, settle, extend, own, leave, group, ungroup, drop, configure script
	get, browse, stats, del, move, purge, reset, invalid, audit, progress, pending, span, trim, split            script
}

// newScripts puts fragments and operations together.
func newScripts(flags bool) *scripts {
	a := redisconn.Assembly{Flags: flags, Frees: "redis.call('UNLINK', KEYS[1] .. ':none')"}
	plain := func(name string, parts ...string) script { return script{a.Plain(parts...), name} }
	relief := func(name string, parts ...string) script { return script{a.Relief(parts...), name} }
	state := luaSpread + "\n" + luaState
	return &scripts{
		create:  plain("create", luaHead, luaTypes, luaTyped, luaCreate),
		publish: plain("publish", luaPublish),
		store:   plain("store", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaStore),
		claim: relief("claim", luaGate, luaTypes, luaLease, luaQuick, luaHead, state, luaFan, luaAdvance,
			luaRead, luaLost, luaClaim),
		book:   relief("book", luaGuard, luaTypes, luaLease, luaBooked, luaHead, state, luaRead, luaBook),
		begin:  relief("begin", luaHead, luaTypes, luaTyped, state, luaHeld, luaBegin),
		ack:    relief("ack", luaHear, luaSpread, luaAck, luaAckEach, luaAckKeys, luaHead, luaState, luaBehind),
		settle: relief("settle", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaHear, luaHeld, luaSettle),
		extend: relief("extend", luaHear, luaSpread, luaExtend),
		own:    relief("own", luaHead, luaTypes, luaTyped, state, luaRetire, luaOwn),
		leave: relief("leave", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaLost, luaRetire,
			luaHear, luaLeave),
		group:     plain("group", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaGroup),
		ungroup:   relief("ungroup", luaHead, luaTypes, luaTyped, state, luaRead, luaSweep, luaNames, luaUngroup),
		drop:      relief("drop", luaHead, luaTypes, luaTyped, luaNames, luaDrop),
		configure: relief("configure", luaHead, luaTypes, luaTyped, luaConfigure),
		get:       relief("get", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaView, luaGet),
		browse:    relief("browse", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaView, luaBrowse),
		stats:     relief("stats", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaStats),
		del:       relief("delete", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaDelete),
		move:      relief("move", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaMove),
		purge:     relief("purge", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaRead, luaSweep, luaPurge),
		reset: relief("reset", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaRead, luaSweep,
			luaReplay, luaReset),
		invalid:  relief("invalid", luaHead, luaTypes, luaTyped, state, luaRead, luaInvalid),
		progress: relief("progress", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaNames, luaProgress),
		pending:  relief("pending", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaPending),
		span:     relief("span", luaHead, luaTypes, luaTyped, state, luaReplay, luaSpan),
		trim:     relief("trim", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaRead, luaTrim),
		split:    relief("split", luaHead, luaTypes, luaTyped, luaNames, luaSplit),
		audit: relief("audit", luaHead, luaTypes, luaTyped, state, luaFan, luaAdvance, luaRead, luaSweep, luaBelongs,
			luaNumbers, luaAudit),
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
		err = reply.ErrShape(s.name)
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
			c.err = c.reply.ErrShape(c.script.name)
		}
	}
	if failed != nil {
		redisconn.Relocate(ctx, d.client, failed)
	}
}
