package redis

import (
	"context"
	"crypto/sha1"
	_ "embed" // the scripts
	"encoding/hex"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Fragments that scripts share.
var (
	//go:embed lua/head.lua
	luaHead string
	//go:embed lua/account.lua
	luaAccount string
	//go:embed lua/rules.lua
	luaRules string
)

// One operation each.
var (
	//go:embed lua/take.lua
	luaTake string
	//go:embed lua/return.lua
	luaReturn string
	//go:embed lua/slots.lua
	luaSlots string
	//go:embed lua/marks.lua
	luaMarks string
	//go:embed lua/change.lua
	luaChange string
	//go:embed lua/status.lua
	luaStatus string
	//go:embed lua/list.lua
	luaList string
	//go:embed lua/report.lua
	luaReport string
)

// script is one operation, ready to be called.
type script struct{ source, sha string }

func newScript(parts ...string) script {
	source := ""
	for _, part := range parts {
		source += part + "\n"
	}
	sum := sha1.Sum([]byte(source))
	return script{source: source, sha: hex.EncodeToString(sum[:])}
}

var (
	scriptTake   = newScript(luaHead, luaAccount, luaRules, luaTake)
	scriptReturn = newScript(luaHead, luaAccount, luaRules, luaReturn)
	scriptSlots  = newScript(luaHead, luaSlots)
	scriptMarks  = newScript(luaHead, luaMarks)
	scriptChange = newScript(luaHead, luaAccount, luaChange)
	scriptStatus = newScript(luaHead, luaAccount, luaStatus)
	scriptList   = newScript(luaHead, luaList)
	scriptReport = newScript(luaHead, luaReport)
)

// run calls a script. One whose answer was lost is sent once more: all of them may be applied twice. A server that does
// not know it, after a restart or SCRIPT FLUSH, is sent its text.
func (s *Store) run(ctx context.Context, sc script, keys []string, args ...any) ([]any, error) {
	reply, err := s.try(ctx, sc, keys, args)
	if errors.Is(err, driver.ErrUnknown) && ctx.Err() == nil {
		reply, err = s.try(ctx, sc, keys, args)
	}
	return reply, err
}

func (s *Store) try(ctx context.Context, sc script, keys []string, args []any) ([]any, error) {
	reply, err := s.client.EvalSha(ctx, sc.sha, keys, args...).Slice()
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = s.client.Eval(ctx, sc.source, keys, args...).Slice()
	}
	if err == nil {
		return reply, nil
	}
	err = redisconn.Classify(err)
	if c, ok := s.client.(*goredis.ClusterClient); ok &&
		(errors.Is(err, driver.ErrNotApplied) || errors.Is(err, driver.ErrUnknown)) {
		c.ReloadState(ctx) // by itself it asks a dead primary for up to a minute
	}
	return nil, err
}

var errReply = driver.NewError(driver.ErrUnknown, "the guard store answered something else than expected",
	"look whether other programs write keys with this prefix", nil)

// numbers reads a reply of n numbers for each of some requests.
func numbers(reply []any, n, requests int) ([]int64, error) {
	if len(reply) != n*requests {
		return nil, errReply
	}
	out := make([]int64, len(reply))
	for i, v := range reply {
		number, ok := v.(int64)
		if !ok {
			return nil, errReply
		}
		out[i] = number
	}
	return out, nil
}
