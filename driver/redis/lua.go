package redis

import "embed"

// Operations, and the fragments that they share, each by its name: one that is missing fails the build.
//
//go:embed lua/ack.lua lua/acking.lua lua/answers.lua lua/begin.lua lua/chain.lua lua/check.lua lua/claim.lua
//go:embed lua/claiming.lua lua/configure.lua lua/delete.lua lua/drop.lua lua/emit.lua lua/exchange.lua lua/extend.lua
//go:embed lua/fan.lua lua/flight.lua lua/group.lua lua/guard.lua lua/head.lua lua/identify.lua lua/invalid.lua
//go:embed lua/leases.lua lua/leave.lua lua/losses.lua lua/memory.lua lua/move.lua lua/once.lua lua/page.lua
//go:embed lua/peek.lua lua/plain.lua lua/promote.lua lua/publish.lua lua/purge.lua lua/quick.lua lua/repair.lua
//go:embed lua/settle.lua lua/settling.lua lua/slim.lua lua/state.lua lua/stats.lua lua/store.lua lua/storing.lua
//go:embed lua/tidy.lua lua/types.lua lua/ungroup.lua lua/view.lua lua/viewing.lua
var luaFiles embed.FS
