-- promote: what is due takes effect: delayed messages, waits and leases of all groups, expiries, dedup windows.
-- Fragments: head, guard, types, memory, answers, identify, segments, store, chain, state, losses, leases, fan.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 how much to do at most.
-- Returns {"ok", now, when something is due next or "", groups that now have something to claim}, or {"nogroup"} when something is
--   due and there is no group.
local budget = tonumber(ARGV[3])

local due = call('ZRANGEBYSCORE', DELAYED, '-inf', now, 'LIMIT', 0, budget)
if #due > 0 and groups == 0 then return {'nogroup'} end
if #due > 0 then
  local items, keyed = {}, false
  for _, item in ipairs(call('HMGET', PENDING, unpack(due))) do
    if item then -- or it is damaged: audit will tell
      items[#items + 1] = renewed(item)
      keyed = keyed or key_of(item)
    end
  end
  call('ZREM', DELAYED, unpack(due))
  call('HDEL', PENDING, unpack(due))
  count('fanned', #items)
  if #items > 0 then fan_out(items, keyed) end
  budget = budget - #due
end

for o = FIRST, #KEYS - WIDTH, WIDTH do
  if budget > 0 then
    leases, family = {}, nil
    budget = advance(o, budget)
    store_leases(o)
  end
end

-- expire_early ends a message that expired before it was due. A dead letter of it goes to every group.
local function expire_early(seq, item)
  if call('HGET', TOPIC, 'expired_dead') ~= '1' then return leave_pending(seq, 'expired') end
  unpend(seq)
  count('expired', 1)
  call('HSET', LIVE, seq, letters)
  for o = FIRST, #KEYS - WIDTH, WIDTH do
    tally(o, 'received', 1)
    bury(o, seq, new_state(item), '', '')
  end
end

-- expire_ready ends a message in one group, unless it runs there: then it expires when it comes back.
local function expire_ready(o, seq)
  local s = state_of(o, seq)
  if s and s.letter == 'I' then
    s.letter = 'X'
    return save(o, seq, s)
  end
  if s and (s.letter == 'W' or s.letter == 'T') then take_waiting(o, seq, s) else withdraw(o, seq) end
  expire(o, s and s.item or item_of(seq))
end

for _, seq in ipairs(call('ZRANGEBYSCORE', EXPIRES, '-inf', now, 'LIMIT', 0, math.max(budget, 0))) do
  local item = call('HGET', PENDING, seq)
  if item then
    expire_early(seq, item)
  else
    local live = call('HGET', LIVE, seq) or call('HGET', TOPIC, 'solo') or ''
    for o = FIRST, #KEYS - WIDTH, WIDTH do
      if find(live, attribute(o, 'i'), 1, true) then expire_ready(o, seq) end
    end
  end
  call('ZREM', EXPIRES, seq)
  budget = budget - 1
end

for _, id in ipairs(call('ZRANGEBYSCORE', WINDOWS, '-inf', now, 'LIMIT', 0, math.max(budget, 0))) do
  call('ZREM', WINDOWS, id)
  call('HDEL', DEDUP, id)
end

commit()
local soonest
local function least(set)
  local at = tonumber(call('ZRANGE', set, 0, 0, 'WITHSCORES')[2])
  if at and (not soonest or at < soonest) then soonest = at end
end
least(DELAYED)
least(EXPIRES)
least(WINDOWS)
for o = FIRST, #KEYS - WIDTH, WIDTH do least(KEYS[o + TIMER]) end
local names = {}
for o in pairs(woken) do names[#names + 1] = attribute(o, 'name') end
return {'ok', now .. '', soonest and soonest .. '' or '', table.concat(names, ' ')}
