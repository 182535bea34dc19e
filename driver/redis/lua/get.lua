-- get: a message as its groups, or the topic, see it.
-- Fragments: head, guard, meant, memory, answers, identify, segments, store, chain, state, flight, view.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 the group or "" for all, 4 sequence number.
-- Returns {"ok", views} or {"missing"}.
local seq, views = ARGV[4], {}
local of_all = view_invalid(seq) or view_pending(seq)
if of_all then return {'ok', {of_all}} end
for at = FIRST, #KEYS - WIDTH, WIDTH do
  if ARGV[3] == '' or o == at then views[#views + 1] = view(at, seq) end
end
return {#views > 0 and 'ok' or 'missing', views}
