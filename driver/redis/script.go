package redis

import (
	"context"
	_ "embed" // the scripts
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Fragments that scripts share.
var (
	//go:embed lua/head.lua
	luaHead string
	//go:embed lua/types.lua
	luaTypes string
	//go:embed lua/guard.lua
	luaGuard string
	//go:embed lua/slim.lua
	luaSlim string
	//go:embed lua/memory.lua
	luaMemory string
	//go:embed lua/answers.lua
	luaAnswers string
	//go:embed lua/once.lua
	luaOnce string
	//go:embed lua/identify.lua
	luaIdentify string
	//go:embed lua/store.lua
	luaStore string
	//go:embed lua/chain.lua
	luaChain string
	//go:embed lua/state.lua
	luaState string
	//go:embed lua/losses.lua
	luaLosses string
	//go:embed lua/leases.lua
	luaLeases string
	//go:embed lua/fan.lua
	luaFan string
	//go:embed lua/storing.lua
	luaStoring string
	//go:embed lua/settling.lua
	luaSettling string
	//go:embed lua/flight.lua
	luaFlight string
	//go:embed lua/acking.lua
	luaAcking string
	//go:embed lua/claiming.lua
	luaClaiming string
	//go:embed lua/quick.lua
	luaQuick string
	//go:embed lua/viewing.lua
	luaViewing string
)

// One operation each.
var (
	//go:embed lua/publish.lua
	luaPublish string
	//go:embed lua/plain.lua
	luaPlain string
	//go:embed lua/claim.lua
	luaClaim string
	//go:embed lua/ack.lua
	luaAck string
	//go:embed lua/exchange.lua
	luaExchange string
	//go:embed lua/settle.lua
	luaSettle string
	//go:embed lua/emit.lua
	luaEmit string
	//go:embed lua/check.lua
	luaCheck string
	//go:embed lua/begin.lua
	luaBegin string
	//go:embed lua/extend.lua
	luaExtend string
	//go:embed lua/leave.lua
	luaLeave string
	//go:embed lua/promote.lua
	luaPromote string
	//go:embed lua/group.lua
	luaGroup string
	//go:embed lua/ungroup.lua
	luaUngroup string
	//go:embed lua/configure.lua
	luaConfigure string
	//go:embed lua/delete.lua
	luaDelete string
	//go:embed lua/move.lua
	luaMove string
	//go:embed lua/purge.lua
	luaPurge string
	//go:embed lua/drop.lua
	luaDrop string
	//go:embed lua/invalid.lua
	luaInvalid string
	//go:embed lua/repair.lua
	luaRepair string
	//go:embed lua/peek.lua
	luaPeek string
	//go:embed lua/tidy.lua
	luaTidy string
	//go:embed lua/stats.lua
	luaStats string
	//go:embed lua/view.lua
	luaView string
	//go:embed lua/page.lua
	luaPage string
)

type script = redisconn.Script

// scripts are all operations, put together for one version of the server.
type scripts struct {
	publish, plain, claim, ack, exchange, settle, emit, check, begin, extend, leave, promote, group, ungroup, configure script
	del, move, purge, drop, invalid, repair, peek, tidy, stats, view, page                                              script
}

// newScripts puts fragments and operations together. Those that relieve a full server may write when it is out of memory:
// from Redis 7 on by a flag; before, a script is judged by its first write, so that is one which frees memory.
func newScripts(flags bool) *scripts {
	plain := func(parts ...string) script { return newScript("", parts...) }
	relief := func(parts ...string) script {
		if flags {
			return newScript("#!lua flags=allow-oom\n", parts...)
		}
		return newScript("redis.call('HDEL', KEYS[1], '')\n", parts...)
	}
	head := luaHead + "\n" + luaTypes + "\n"
	guarded := luaHead + "\n" + luaGuard + "\n" + luaTypes + "\n"
	store := luaMemory + "\n" + luaAnswers + "\n" + luaIdentify + "\n" + luaStore
	group := head + store + luaChain + luaState
	return &scripts{
		publish:   plain(guarded, store, luaChain, luaFan, luaStoring, luaPublish),
		plain:     plain(luaSlim, luaGuard, luaAnswers, luaPlain),
		claim:     relief(luaHead, luaClaiming, luaQuick, luaTypes, store, luaChain, luaState, luaLosses, luaLeases, luaClaim),
		ack:       relief(luaHead, luaMemory, luaAnswers, luaAcking, luaAck),
		exchange:  relief(luaHead, luaMemory, luaAnswers, luaAcking, luaClaiming, luaExchange),
		settle:    relief(group, luaLosses, luaLeases, luaSettling, luaSettle),
		emit:      relief(guarded, store, luaChain, luaState, luaLosses, luaLeases, luaFan, luaStoring, luaSettling, luaEmit),
		check:     relief(group, luaLosses, luaLeases, luaCheck),
		begin:     relief(group, luaLosses, luaLeases, luaBegin),
		extend:    relief(group, luaLosses, luaLeases, luaExtend),
		leave:     relief(group, luaLosses, luaLeases, luaLeave),
		promote:   relief(guarded, store, luaChain, luaState, luaLosses, luaLeases, luaFan, luaPromote),
		group:     plain(head, luaGroup),
		ungroup:   relief(head, luaUngroup),
		configure: relief(head, luaConfigure),
		del:       relief(guarded, luaMemory, luaAnswers, luaOnce, luaIdentify, luaStore, luaChain, luaState, luaFlight, luaDelete),
		move:      relief(guarded, luaMemory, luaAnswers, luaOnce, luaIdentify, luaStore, luaChain, luaState, luaFlight, luaFan, luaMove),
		purge:     relief(guarded, luaMemory, luaAnswers, luaOnce, luaIdentify, luaStore, luaChain, luaState, luaFlight, luaPurge),
		drop:      relief(guarded, luaDrop),
		invalid:   relief(guarded, store, luaChain, luaState, luaLosses, luaLeases, luaFlight, luaInvalid),
		repair:    relief(guarded, store, luaChain, luaState, luaFlight, luaRepair),
		peek:      plain(luaPeek),
		tidy:      relief(luaTidy),
		stats:     plain(luaStats),
		view:      plain(luaIdentify, luaViewing, luaView),
		page:      plain(luaIdentify, luaViewing, luaPage),
	}
}

func newScript(first string, parts ...string) script {
	return redisconn.NewScript(first + strings.Join(parts, "\n"))
}

// run calls a script.
func (d *Driver) run(ctx context.Context, s *script, keys []string, args ...any) ([]any, error) {
	reply, err := s.Run(ctx, d.client, keys, args...)
	return reply, d.nameForeign(ctx, keys, err)
}

// runAt calls a script at a durability level.
func (d *Driver) runAt(ctx context.Context, level driver.Durability, s *script, keys []string, args []any) ([]any, error) {
	if n := level.Replicas(); n > 0 {
		reply, err := s.RunReplicated(ctx, d.client, n, keys, args...)
		return reply, d.nameForeign(ctx, keys, err)
	}
	return d.run(ctx, s, keys, args...)
}

// text returns one element of a reply.
func text(reply []any, i int) string {
	if i < len(reply) {
		s, _ := reply[i].(string)
		return s
	}
	return ""
}

// integer returns one number of a reply.
func integer(reply []any, i int) int64 {
	if i < len(reply) {
		n, _ := reply[i].(int64)
		return n
	}
	return 0
}

// list returns a list in a reply.
func list(reply []any, i int) []any {
	if i < len(reply) {
		l, _ := reply[i].([]any)
		return l
	}
	return nil
}

// texts returns a list in a reply; what is missing in it is "".
func texts(reply []any, i int) []string {
	all := list(reply, i)
	out := make([]string, len(all))
	for j, v := range all {
		out[j], _ = v.(string)
	}
	return out
}
