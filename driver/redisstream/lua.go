package redisstream

import "embed"

// Operations, and the fragments that they share, each by its name: one that is missing fails the build.
//
//go:embed lua/ack.lua lua/ack_each.lua lua/ack_keys.lua lua/ack_plain.lua lua/advance.lua lua/audit.lua lua/begin.lua
//go:embed lua/belongs.lua lua/book.lua lua/booked.lua lua/browse.lua lua/claim.lua lua/configure.lua lua/create.lua
//go:embed lua/delete.lua lua/drop.lua lua/extend.lua lua/fan.lua lua/gate.lua lua/get.lua lua/group.lua lua/guard.lua
//go:embed lua/head.lua lua/hear.lua lua/held.lua lua/invalid.lua lua/lease.lua lua/leave.lua lua/lost.lua lua/meant.lua
//go:embed lua/member.lua lua/move.lua lua/names.lua lua/numbers.lua lua/own.lua lua/owned.lua lua/pending.lua
//go:embed lua/progress.lua lua/publish.lua lua/purge.lua lua/quick.lua lua/read.lua lua/renew.lua lua/replay.lua
//go:embed lua/reset.lua lua/retire.lua lua/settle.lua lua/slim.lua lua/span.lua lua/split.lua lua/spread.lua
//go:embed lua/state.lua lua/stats.lua lua/store.lua lua/sweep.lua lua/there.lua lua/trim.lua lua/types.lua
//go:embed lua/ungroup.lua lua/view.lua
var luaFiles embed.FS
