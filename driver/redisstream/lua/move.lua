-- move: makes one message due.
-- Fragments: head, types, there, spread, state, fan, advance.
-- ARGV: 1 partitions, 2 group or "", 3 "i" and an id, or "r" and a stream id, 4 which death of it is meant, or "0", 5 another group
--   that gets it, or "", 6 wait in ms, 7 id for an undecodable one, 8 bytes; then the fields of its new content, if it is edited.
-- Returns {"stale"}, {"missing"}, {"conflict"}, {"group"}, {"outlived"}, {"other"}, {"settled"}, {"invalid"} or {"ok"}.
local other, after, fields = ARGV[5], tonumber(ARGV[6]), nil
advance(1000)
if #ARGV > 8 then
  fields = {}
  for i = 9, #ARGV do fields[i - 8] = ARGV[i] end
end
local id, name = named(ARGV[3])
if id == 'later' and ARGV[2] ~= '' then return {'missing'} end -- it belongs to no group yet
local later = id == 'later' and unlater(name)
if later then
  if fields then
    count('bytes', tonumber(ARGV[8]) - later.bytes)
    later.fields, later.bytes = fields, tonumber(ARGV[8])
  end
  later.cause = REPLAY
  if after > 0 then postpone(name, later, soon + after) else due(name, later) end
  return {'ok'}
end
if not id then return {'missing'} end
if call('ZSCORE', INVALID, id) then
  if not fields then return {'invalid'} end
  call('ZREM', INVALID, id)
  call('HDEL', RAW, id)
  count('published', 1)
  count('messages', 1)
  count('bytes', tonumber(ARGV[8]))
  local m = {fields = fields, pub = now, bytes = tonumber(ARGV[8]), exp = 0, cause = REPLAY}
  if after > 0 then postpone(ARGV[7], m, soon + after) else due(ARGV[7], m) end
  return {'ok'}
end

local g = ARGV[2]
if g == '' then -- it belongs to groups
  for _, one in ipairs(groups()) do
    if state(one, id) or left(id) > 0 and unread(one, id) then return {'group'} end
  end
  return {'missing'}
end
if call('HEXISTS', GROUPS, g) == 0 then return {'missing'} end
local s = state(g, id)
if ARGV[4] ~= '0' and s and not died(s, ARGV[4]) then return {'outlived'} end
if other ~= '' and call('HEXISTS', GROUPS, other) == 0 then return {'other'} end
if not s then return {left(id) > 0 and unread(g, id) and 'conflict' or other ~= '' and shown(g, id) and 'settled' or 'missing'} end
if other ~= '' and (s.s ~= 'D' or state(other, id) or left(id) > 0 and unread(other, id)) then return {'settled'} end
if s.s ~= 'W' and s.s ~= 'D' then return {'conflict'} end

local tail, key = s.s == 'D' or s.tail or s.k == '', s.k
if s.s == 'D' then
  local m = meta(id)
  unbury(g, id)
  s.f, s.x, s.r, s.e, s.h = 0, 0, s.r + 1, nil, nil
  if other ~= '' then
    fields = fields or content(g, id)
    forget(g, id)
    tally(g, 'cancelled', 1)
    tally(other, 'received', 1)
    g = other
  end
  need(id, m)
  if has(of(g, 'done')) then call('HDEL', of(g, 'done'), id) end
  if m.exp > now then timer(EXPIRES, m.exp, id) end
  call('ZADD', made(of(g, 'off')), sequence(), id)
  s.s = ''
else
  take_out(g, id, s)
end
if fields then
  call('HSET', made(of(g, 'edited')), id, cmsgpack.pack(fields))
  local f = index(fields)
  s.k, s.l = f.key or '', lane_of(f)
end
s.c, s.n = REPLAY, now
tail = tail or s.k ~= key -- else it is still where it was in its key
if after > 0 then
  wait(g, id, s, soon + after, tail)
else
  if tail then s.p = place() end
  enter(g, id, s)
end
return {'ok'}
