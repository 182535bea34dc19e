-- delete: removes one message, for one group or for all.
-- Fragments: head, types, there, spread, state, fan, advance.
-- ARGV: 1 partitions, 2 group or "" for all, 3 "i" and an id, or "r" and a stream id, 4 which death of it is
--   meant, or "0".
-- Returns {"stale"}, {"missing"}, {"flying"}, {"outlived"} or {"ok"}.
local g = ARGV[2]
advance(1000)
local id, name = named(ARGV[3])
if id == 'later' and g ~= '' then return {'missing'} end -- it belongs to no group yet
local later = id == 'later' and unlater(name)
if later then
  leave_later(name, later, 'cancelled')
  return {'ok'}
end
if not id then return {'missing'} end
if call('ZREM', INVALID, id) == 1 then
  call('HDEL', RAW, id)
  return {'ok'}
end
local found = {}
for _, other in ipairs(groups()) do
  local s = (g == '' or g == other) and state(other, id)
  local ready = (g == '' or g == other) and not s and left(id) > 0 and unread(other, id)
  if ARGV[4] ~= '0' and g == other and (s and not died(s, ARGV[4]) or ready or not s and shown(g, id)) then return {'outlived'} end
  if s and s.s == 'I' then return {'flying'} end
  if s or ready then found[#found + 1] = {other, s} end
end
for _, f in ipairs(found) do
  local other, s = f[1], f[2]
  if not s then
    skip(other, id, 'cancelled')
  elseif s.s ~= 'D' then
    cancel(other, id, s)
  else
    unbury(other, id)
    tally(other, 'cancelled', 1)
    forget(other, id)
    tidy(id)
  end
end
-- What is kept goes when no group sees it any more.
local some, rest = #found > 0, false
for _, other in ipairs(groups()) do
  local ours = g == '' or g == other
  if shown(other, id) and not state(other, id) then
    if ours then call('HSET', made(of(other, 'done')), id, '') end
    some, rest = some or ours, rest or not ours
  end
end
if some and not rest and call('ZSCORE', KEPT, id) then vanish(id, meta(id)) end
return {some and 'ok' or 'missing'}
