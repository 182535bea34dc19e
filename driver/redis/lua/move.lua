-- move: makes one message due after a while: a delayed or held one, or a dead or waiting one of a group.
-- Fragments: head, guard, meant, types, memory, answers, once, identify, segments, store, chain, state, flight, fan.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 the group or "", 4 id of the request, 5 sequence number, 6 wait in ms, 7 envelope that replaces the
--   content, or "", 8 its lane, 9 its key, 10 which death of it is meant, or "0", 11 another group that gets it, or "".
-- Returns {"ok"}, {"missing"}, {"invalid"} (it cannot be decoded), {"nogroup"} (it would be due, and there is no group), {"pending"} (it belongs
--   to the topic), {"group"} (it belongs to groups), {"outlived"} (that death is over), {"other"} (that group does not exist), {"settled"} (it
--   cannot go to the other group yet) or {"conflict"}.
local seq, wait_ms, edit = ARGV[5], tonumber(ARGV[6]), ARGV[7]
if call('ZSCORE', INVALID, seq) then return {'invalid'} end
if call('HEXISTS', BODIES, seq) == 0 then return {'missing'} end

-- edited is an item as it is from now on, with the lane and the key of its content.
local function edited(item)
  local lane, published, key = match(item, '^(%d)(%d+@%d+)[^:]*(.*)$')
  if not lane then return nil end -- damaged
  if edit ~= '' then lane, key = ARGV[8], ARGV[9] ~= '' and ':' .. ARGV[9] or '' end
  return lane .. published .. key
end

local held_back = call('HGET', PENDING, seq)
if held_back then
  local item = edited(held_back)
  if ARGV[3] ~= '' then return {'pending'} end
  if not item then return {'missing'} end
  if groups == 0 then return {'nogroup'} end
  if edit ~= '' then
    count('bytes', #edit - call('HSTRLEN', BODIES, seq))
    call('HSET', BODIES, seq, edit)
  end
  unpend(seq)
  if wait_ms > 0 then
    call('HSET', PENDING, seq, item)
    call('ZADD', DELAYED, soon + wait_ms, seq)
    timed(soon + wait_ms)
  else
    count('fanned', 1)
    fan_out({renewed(item)}, key_of(item))
  end
  commit()
  return answer(ARGV[4], {'ok'})
end
if ARGV[3] == '' then return {'group'} end
if not o then return {'missing'} end
local place, s = where(o, seq)
if place == '' then return {'missing'} end
if ARGV[10] ~= '0' and not died(place, s, ARGV[10]) then return {'outlived'} end
if place == 'I' or place == 'R' then return {'conflict'} end
-- of what expired before anybody had it the item has no key
if place == 'D' and not key_of(s.item) then s.item = s.item .. key_in(call('HGET', KEYS[o + EDITED], seq) or call('HGET', BODIES, seq)) end
local item = edited(s.item)
if not item then return {'missing'} end
if ARGV[11] ~= '' then
  local other = offset(ARGV[11])
  if not other then return {'other'} end
  -- a mark that it was deleted there would take the new one instead of the old
  if place ~= 'D' or where(other, seq) ~= '' or call('SISMEMBER', KEYS[other + GONE], seq) == 1 then return {'settled'} end
  if edit == '' then edit = call('HGET', KEYS[o + EDITED], seq) or '' end
  unbury(o, seq)
  forget(o, seq)
  tally(o, 'cancelled', 1)
  tally(other, 'received', 1)
  o = other
end

local last = place ~= 'W' or key_of(item) ~= key_of(s.item)
local stays = not last and strict(o, s.item)
if not last then -- it keeps its place
  local order = match(s.item, '^%d+(@[^:]*)')
  item = match(item, '^%d+') .. order .. match(item, '^%d+@[^:]*(.*)$')
end
if overdue(seq) or place == 'D' and call('ZSCORE', EXPIRES, seq) == false then call('ZREM', EXPIRES, seq) end
if place == 'D' then
  if ARGV[11] == '' then
    unbury(o, seq)
    recover(o, s.item)
  end
  local live = call('HGET', LIVE, seq) or ''
  call('HSET', LIVE, seq, live .. attribute(o, 'i'))
  if live == '' then
    count('messages', 1)
    count('bytes', call('HSTRLEN', BODIES, seq))
  end
  s.failed, s.lost, s.rounds = 0, 0, s.rounds + 1
elseif stays then
  unwait(o, seq)
else
  take_waiting(o, seq, s)
end
if edit ~= '' then call('HSET', KEYS[o + EDITED], seq, edit) end
if stays and item ~= s.item then -- its key is the same, its lane may not be
  local c = chain_of(o, key_of(item))
  local at = c.first ~= s.item and ahead(o, c, seq)
  if at then call('HSET', KEYS[o + NEXT], at, item) end
  if c.first == s.item then
    c.first = item
    keep(o, key_of(item), c)
  end
end
s.cause, s.item, s.letter = REPLAY, item, 'R'
if wait_ms > 0 then wait(o, item, s, soon + wait_ms, last, false) else go_on(o, seq, s, last) end
commit()
return answer(ARGV[4], {'ok'})
