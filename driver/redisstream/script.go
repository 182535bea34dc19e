package redisstream

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	goredis "github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

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

// newScripts puts fragments and operations together. From Redis 7 on, those that relieve a full server may write when it is
// out of memory.
func newScripts(flags bool) *scripts {
	plain := func(parts ...string) script { return newScript("", parts...) }
	relief := func(parts ...string) script {
		if flags {
			return newScript("#!lua flags=allow-oom\n", parts...)
		}
		return newScript("redis.call('UNLINK', KEYS[1] .. ':none')\n", parts...) // before 7.0, a script whose first write relieves may go on
	}
	return &scripts{
		create:    plain("head", "types", "typed", "create"),
		publish:   plain("publish"),
		store:     plain("head", "types", "typed", "state", "fan", "advance", "store"),
		claim:     relief("gate", "types", "lease", "quick", "head", "state", "fan", "advance", "read", "lost", "claim"),
		book:      relief("guard", "types", "lease", "booked", "head", "state", "read", "book"),
		begin:     relief("head", "types", "typed", "state", "held", "begin"),
		ack:       relief("hear", "ack", "ack_each", "ack_keys", "head", "state", "behind"),
		settle:    relief("head", "types", "typed", "state", "fan", "advance", "hear", "held", "settle"),
		extend:    relief("hear", "extend"),
		own:       relief("head", "types", "typed", "retire", "own"),
		leave:     relief("head", "types", "typed", "state", "fan", "advance", "lost", "retire", "hear", "leave"),
		group:     plain("head", "types", "typed", "state", "fan", "advance", "group"),
		ungroup:   relief("head", "types", "typed", "state", "read", "sweep", "names", "ungroup"),
		drop:      relief("head", "types", "typed", "names", "drop"),
		configure: relief("head", "types", "typed", "configure"),
		get:       relief("head", "types", "typed", "state", "fan", "advance", "view", "get"),
		browse:    relief("head", "types", "typed", "state", "fan", "advance", "view", "browse"),
		stats:     relief("head", "types", "typed", "state", "fan", "advance", "stats"),
		del:       relief("head", "types", "typed", "state", "fan", "advance", "delete"),
		move:      relief("head", "types", "typed", "state", "fan", "advance", "move"),
		purge:     relief("head", "types", "typed", "state", "fan", "advance", "read", "sweep", "purge"),
		reset:     relief("head", "types", "typed", "state", "fan", "advance", "read", "sweep", "replay", "reset"),
		invalid:   relief("head", "types", "typed", "state", "read", "invalid"),
		progress:  relief("head", "types", "typed", "state", "fan", "advance", "names", "progress"),
		pending:   relief("head", "types", "typed", "state", "fan", "advance", "pending"),
		span:      relief("head", "types", "typed", "state", "replay", "span"),
		trim:      relief("head", "types", "typed", "state", "fan", "advance", "read", "trim"),
		split:     relief("head", "types", "typed", "names", "split"),
		audit:     relief("head", "types", "typed", "state", "fan", "advance", "read", "sweep", "belongs", "numbers", "audit"),
	}
}

func newScript(first string, parts ...string) script {
	var b strings.Builder
	b.WriteString(first)
	for _, name := range parts {
		text, err := luaFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			text = []byte("error('" + name + " is missing')") // found by the first test that calls it
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return script{name: parts[len(parts)-1], Script: redisconn.NewScript(b.String())}
}

// run calls a script of a partition.
func (p *partition) run(ctx context.Context, s *script, args ...any) ([]any, error) {
	return p.runAt(ctx, 0, s, args)
}

// runAt calls a script at a durability level: for replicated(n) it waits until n replicas have it.
func (p *partition) runAt(ctx context.Context, level driver.Durability, s *script, args []any) (reply []any, err error) {
	if n := level.Replicas(); n > 0 {
		reply, err = s.RunReplicated(ctx, p.d.client, n, p.keys(), append([]any{p.of}, args...)...)
	} else {
		reply, err = s.Run(ctx, p.d.client, p.keys(), append([]any{p.of}, args...)...)
	}
	if err == nil && len(reply) == 0 {
		err = errShape(s.name, reply)
	}
	return reply, err
}

// scriptCall is one call of a script, and what came of it.
type scriptCall struct {
	part   *partition
	script *script
	args   []any
	reply  []any
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
			c.err = errShape(c.script.name, c.reply)
		}
	}
	if failed != nil {
		redisconn.Relocate(ctx, d.client, failed)
	}
}

func errShape(what string, reply []any) error {
	return driver.NewError(driver.ErrUnknown, fmt.Sprintf("the server's answer to %s makes no sense: %.200v", what, reply),
		"another program may use this connection, or the server runs another version of our scripts", nil)
}

// text returns one element of a reply.
func text(reply []any, i int) string {
	if i < len(reply) {
		s, _ := reply[i].(string)
		return s
	}
	return ""
}

// list returns a list in a reply.
func list(reply []any, i int) []any {
	if i < len(reply) {
		l, _ := reply[i].([]any)
		return l
	}
	return nil
}

// texts returns a list of strings in a reply.
func texts(reply []any, i int) []string {
	l := list(reply, i)
	out := make([]string, len(l))
	for j := range l {
		out[j] = text(l, j)
	}
	return out
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
