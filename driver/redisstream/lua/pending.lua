-- pending: a page of what a group has read and not settled.
-- Fragments: head, types, there, meant, spread, state, fan, advance.
-- ARGV: 1 partitions, 2 group, 3 consumer or "" for all, 4 stream id to begin behind, 5 most of them.
-- Returns {"stale"}, {"missing", groups} or {"ok", list of {id, consumer, idle in ms, deliveries, letter of the state, id of the message}}.
advance(1000)
local list = ARGV[3] == '' and call('XPENDING', STREAM, g, '(' .. ARGV[4], '+', ARGV[5])
  or call('XPENDING', STREAM, g, '(' .. ARGV[4], '+', ARGV[5], ARGV[3])
for i, p in ipairs(list) do
  local s, m = state(g, p[1]), meta(p[1])
  list[i] = {p[1], p[2], int(p[3]), p[4] .. '', s and s.s or 'R', m and m.name or ''}
end
return {'ok', list}
