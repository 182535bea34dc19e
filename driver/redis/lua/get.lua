-- get: a message as its groups, or the topic, see it.
-- Fragments: head, guard, memory, answers, identify, store, chain, state, flight, view.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 offset of the group or "" for all, 4 sequence number.
-- Returns {"ok", views}.
local seq, views = ARGV[4], {}
local of_all = view_invalid(seq) or view_pending(seq)
if of_all then return {'ok', {of_all}} end
for g = 0, groups - 1 do
  local o = FIRST + g * WIDTH
  if ARGV[3] == '' or tonumber(ARGV[3]) == o then views[#views + 1] = view(o, seq) end
end
return {'ok', views}
