-- stats: the counts of a shard and of its groups, all of one moment.
-- Fragments: head, guard, memory, answers, identify, segments, store, chain, state.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch.
-- Returns {"ok", fields of the topic, {delayed, held, invalid}, of each group {name, order, fields, in flight, waiting, dead, members, how
--   long the oldest is ready in ms}}.
local BLOCKERS, BLOCKED = 200, 1000 -- how many leases and waits, and keys, are looked at for what waits behind them

-- blocked_keys returns keys of a group of which something is held or waits: what is behind that is ready, and in no lane.
local function blocked_keys(o)
  local keys, seen = {}, {}
  if not has(o + CHAIN) then return keys end -- nothing has a key
  local function block(item)
    local key = key_of(item)
    if key and not seen[key] then keys[#keys + 1], seen[key] = key, true end
  end
  for _, member in ipairs(call('ZRANGE', KEYS[o + TIMER], 0, BLOCKERS - 1)) do
    local letter, id = part(member, 1, 1), part(member, 2)
    local s = letter == 'W' and state_of(o, id)
    if s then block(s.item) end
    local record = letter == 'L' and call('HGET', KEYS[o + LEASE], id) or ''
    for item in string.gmatch(record, '\n([^\n]+)') do
      if #keys >= BLOCKED then return keys end
      block(item)
    end
  end
  return keys
end

-- longest returns for how long the oldest message of a group is ready.
local function longest(o)
  local oldest = now
  local function older(item)
    local published, later = match(item or '', '^%d+@(%d+)%+?(%d*)')
    if published then oldest = math.min(oldest, published + (tonumber(later) or 0)) end
  end
  for lane = 0, 3 do
    older(call('LINDEX', KEYS[o + LANE + lane], 0))
    older(call('ZRANGE', KEYS[o + BACK + lane], 0, 0)[1])
  end
  for _, key in ipairs(blocked_keys(o)) do
    local c = chain_of(o, key)
    if c and c.first ~= '' and waits(o, c.first) then
      older(call('HGET', KEYS[o + NEXT], seq_of(c.first)))
    elseif c then
      older(c.first)
    end
  end
  return now - oldest .. ''
end

local all = {}
for o = FIRST, #KEYS - WIDTH, WIDTH do
  local counts = call('HMGET', KEYS[o + GROUP], 'inflight', 'waiting')
  all[#all + 1] = {attribute(o, 'name'), attribute(o, 'o'), call('HGETALL', KEYS[o + GROUP]), counts[1] or '0', counts[2] or '0',
    call('ZCARD', KEYS[o + DEAD]) .. '', call('ZRANGEBYSCORE', KEYS[o + MEMBERS], '(' .. now, '+inf'), longest(o)}
end
return {'ok', call('HGETALL', TOPIC), {call('ZCARD', DELAYED) .. '', call('ZCARD', HELD) .. '', call('ZCARD', INVALID) .. ''}, all}
