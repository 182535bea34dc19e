-- progress: what a partition holds, and how far its groups have come.
-- Fragments: head, types, there, spread, state, fan, advance, names.
-- ARGV: 1 partitions.
-- Returns {"stale"} or {"ok", entries, first id, last id, bytes of memory, of each group {name, owner, lag, pending, list of {consumer,
--   pending, idle in ms}}}.
advance(1000)
local memory = 0
local function weigh(key) memory = memory + (call('MEMORY', 'USAGE', key) or 0) end
for _, key in ipairs(TOPIC_KEYS) do weigh(key) end
local all = {}
for _, g in ipairs(groups()) do
  for _, name in ipairs(GROUP_KEYS) do weigh(of(g, name)) end
  local owner = call('HMGET', of(g, 'owner'), 'member', 'until')
  local instance = owner[1] and owner[1] ~= '' and tonumber(owner[2]) > now and call('HGET', of(g, 'names'), owner[1]) or ''
  local consumers = {}
  for _, c in ipairs(call('XINFO', 'CONSUMERS', STREAM, g)) do
    local f = index(c)
    consumers[#consumers + 1] = {f.name, f.pending .. '', int(f.idle)}
  end
  local f = call('HMGET', of(g, 'group'), 'received', 'acked', 'dropped', 'expired', 'cancelled')
  for i = 1, 5 do f[i] = tonumber(f[i] or 0) end
  local pending = call('XPENDING', STREAM, g)[1]
  local unsettled = f[1] - f[2] - f[3] - f[4] - f[5] - call('ZCARD', of(g, 'dead'))
  all[#all + 1] = {g, instance, int(unsettled - pending - call('ZCARD', of(g, 'off'))), pending .. '', consumers}
end
local first, last = call('XRANGE', STREAM, '-', '+', 'COUNT', 1)[1], call('XREVRANGE', STREAM, '+', '-', 'COUNT', 1)[1]
return {'ok', call('XLEN', STREAM) .. '', first and first[1] or '', last and last[1] or '', memory .. '', all}
