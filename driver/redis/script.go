package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

type script = redisconn.Script

// scripts are all operations, put together for one version of the server.
type scripts struct {
	publish, plain, claim, ack, exchange, settle, emit, check, begin, extend, leave, promote, group,
	ungroup, configure script
	del, move, purge, drop, invalid, repair, peek, tidy, stats, view,
	page script
}

// newScripts puts fragments and operations together.
func newScripts(flags bool) *scripts {
	a := redisconn.Assembly{Flags: flags, Frees: "redis.call('HDEL', KEYS[1], '')"}
	plain, relief := a.Plain, a.Relief
	head := luaHead + "\n" + luaTypes + "\n"
	guarded := luaHead + "\n" + luaGuard + "\n" + luaTypes + "\n"
	store := luaMemory + "\n" + luaAnswers + "\n" + luaIdentify + "\n" + luaStore
	group := head + store + luaChain + luaState
	return &scripts{
		publish: plain(guarded, store, luaChain, luaFan, luaStoring, luaPublish),
		plain:   plain(luaSlim, luaGuard, luaAnswers, luaPlain),
		claim: relief(luaHead, luaClaiming, luaQuick, luaTypes, store, luaChain, luaState, luaLosses,
			luaLeases, luaClaim),
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
		del: relief(guarded, luaMemory, luaAnswers, luaOnce, luaIdentify, luaStore, luaChain, luaState,
			luaFlight, luaDelete),
		move: relief(guarded, luaMemory, luaAnswers, luaOnce, luaIdentify, luaStore, luaChain, luaState,
			luaFlight, luaFan, luaMove),
		purge: relief(guarded, luaMemory, luaAnswers, luaOnce, luaIdentify, luaStore, luaChain, luaState,
			luaFlight, luaPurge),
		drop:    relief(guarded, luaDrop),
		invalid: relief(guarded, store, luaChain, luaState, luaLosses, luaLeases, luaFlight, luaInvalid),
		repair:  relief(guarded, store, luaChain, luaState, luaFlight, luaRepair),
		peek:    plain(luaPeek),
		tidy:    relief(luaTidy),
		stats:   plain(luaStats),
		view:    plain(luaIdentify, luaViewing, luaView),
		page:    plain(luaIdentify, luaViewing, luaPage),
	}
}

// run calls a script.
func (d *Driver) run(ctx context.Context, s *script, keys []string, args ...any) (redisconn.Reply, error) {
	reply, err := s.Run(ctx, d.client, keys, args...)
	return reply, d.nameForeign(ctx, keys, err)
}

// runAt calls a script at a durability level.
func (d *Driver) runAt(ctx context.Context, level driver.Durability, s *script, keys []string,
	args []any) (redisconn.Reply, error) {
	if n := level.Replicas(); n > 0 {
		reply, err := s.RunReplicated(ctx, d.client, n, keys, args...)
		return reply, d.nameForeign(ctx, keys, err)
	}
	return d.run(ctx, s, keys, args...)
}
