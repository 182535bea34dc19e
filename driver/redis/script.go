package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

type script = redisconn.Script

// scripts are all operations, put together for one version of the server.
type scripts struct {
	publish, plain, claim, ack, exchange, settle, emit, check, begin, extend, leave, promote, group script
	ungroup, configure, del, move, purge, drop, invalid, repair, peek, stats, get, browse, follow   script
}

func newScripts(flags bool) *scripts {
	l := redisconn.Library{Files: luaFiles, Flags: flags, Frees: "redis.call('HDEL', KEYS[1], '')"}
	return &scripts{
		publish: l.Plain("publish"), plain: l.Plain("plain"), claim: l.Relief("claim"), ack: l.Relief("ack"),
		exchange: l.Relief("exchange"), settle: l.Relief("settle"), emit: l.Relief("emit"), check: l.Relief("check"),
		begin: l.Relief("begin"), extend: l.Relief("extend"), leave: l.Relief("leave"), promote: l.Relief("promote"),
		group: l.Plain("group"), ungroup: l.Relief("ungroup"), configure: l.Relief("configure"), del: l.Relief("delete"),
		move: l.Relief("move"), purge: l.Relief("purge"), drop: l.Relief("drop"), invalid: l.Relief("invalid"),
		repair: l.Relief("repair"), peek: l.Plain("peek"), stats: l.Plain("stats"),
		get: l.Plain("get"), browse: l.Plain("browse"), follow: l.Plain("follow"),
	}
}

// run calls a script.
func (d *Driver) run(ctx context.Context, s *script, keys []string, args ...any) (redisconn.Reply, error) {
	return d.runAt(ctx, 0, s, keys, args)
}

// runAt calls a script at a durability level.
func (d *Driver) runAt(ctx context.Context, level driver.Durability, s *script, keys []string,
	args []any) (redisconn.Reply, error) {
	reply, err := s.RunAt(ctx, d.client, level, keys, args...)
	return reply, d.nameForeign(ctx, keys, err)
}
