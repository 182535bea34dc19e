package redis

import "embed"

// Operations, and the fragments that they share, each by its name: one that is missing fails the build.
//
//go:embed lua/ack.lua lua/acking.lua lua/answers.lua lua/begin.lua lua/browse.lua lua/chain.lua lua/check.lua
//go:embed lua/claim.lua lua/claiming.lua lua/configure.lua lua/delete.lua lua/drop.lua lua/emit.lua lua/exchange.lua
//go:embed lua/extend.lua lua/fan.lua lua/flight.lua lua/follow.lua lua/get.lua lua/group.lua lua/guard.lua
//go:embed lua/head.lua lua/identify.lua lua/invalid.lua lua/leases.lua lua/leave.lua lua/losses.lua lua/meant.lua
//go:embed lua/memory.lua lua/move.lua lua/once.lua lua/peek.lua lua/plain.lua lua/promote.lua lua/publish.lua lua/purge.lua
//go:embed lua/quick.lua lua/repair.lua lua/segments.lua lua/settle.lua lua/settling.lua lua/slim.lua lua/state.lua
//go:embed lua/stats.lua lua/store.lua lua/storing.lua lua/types.lua lua/ungroup.lua lua/view.lua
var luaFiles embed.FS
