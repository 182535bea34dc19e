-- get: a message as all groups see it.
-- Fragments: head, types, typed, spread, state, fan, advance, view.
-- ARGV: 1 partitions, 2 group or "" for all, 3 "i" and an id, or "r" and a stream id.
-- Returns {"stale"} or {"ok", views}.
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
advance(1000)
local id, views = string.sub(ARGV[3], 2), {}
if string.sub(ARGV[3], 1, 1) == 'i' then
  local name = id
  id = call('HGET', IDS, name)
  if not id then return {'ok', views} end
  if id == 'later' then return {'ok', {view_later(name)}} end
end
local x = view_invalid(id)
if x then return {'ok', {x}} end
for _, g in ipairs(groups()) do
  if ARGV[2] == '' or ARGV[2] == g then views[#views + 1] = view(g, id) end
end
return {'ok', views}
