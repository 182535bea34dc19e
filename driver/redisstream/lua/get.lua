-- get: a message as all groups see it.
-- Fragments: head, types, there, spread, state, fan, advance, view.
-- ARGV: 1 partitions, 2 group or "" for all, 3 "i" and an id, or "r" and a stream id.
-- Returns {"stale"} or {"ok", views}.
advance(1000)
local id, name = named(ARGV[3])
if not id then return {'ok', {}} end
local x, views = id == 'later' and view_later(name) or view_invalid(id), {}
if x then return {'ok', {x}} end
for _, g in ipairs(groups()) do
  if ARGV[2] == '' or ARGV[2] == g then views[#views + 1] = view(g, id) end
end
return {'ok', views}
