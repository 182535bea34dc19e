-- delete: removes one message, for one group or for all.
-- Fragments: head, types, there, spread, state, fan, advance.
-- ARGV: 1 partitions, 2 group or "" for all, 3 "i" and an id, or "r" and a stream id, 4 which death of it is
--   meant, or "0".
-- Returns {"stale"}, {"missing"}, {"flying"}, {"outlived"} or {"ok"}.
local g = ARGV[2]
advance(1000)
local id, name = named(ARGV[3])
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
local found = false
for _, other in ipairs(groups()) do
  local s = (g == '' or g == other) and state(other, id)
  if ARGV[4] ~= '0' and g == other and (s and not died(s, ARGV[4]) or not s and left(id) > 0 and unread(g, id)) then return {'outlived'} end
  if s and s.s == 'I' then return {'flying'} end
end
for _, other in ipairs(groups()) do
  if g == '' or g == other then
    local s = state(other, id)
    if s and s.s == 'D' then
      found = true
      unbury(other, id)
      tally(other, 'cancelled', 1)
      forget(other, id)
      tidy(id)
    elseif s then
      found = true
      cancel(other, id, s)
    elseif left(id) > 0 and unread(other, id) then
      found = true
      skip(other, id, 'cancelled')
    end
  end
end
return {found and 'ok' or 'missing'}
