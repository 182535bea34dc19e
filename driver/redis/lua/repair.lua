-- repair: mends one thing that an audit found, if it is still so. Repeating it changes nothing more.
-- Fragments: head, guard, meant, types, memory, answers, identify, segments, store, chain, state, flight.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 the group or "", 4 what: "orphan", "ghost", "double", "lease", "timer", "chain", "head", "link",
--   "grave", "losses", "id", "stale id", "pending", "foreign", "segment", "counts", "total"; 5 and 6 as told below.
-- Returns {"fixed"} or {"sound"}.
local what, first, second = ARGV[4], ARGV[5], ARGV[6]

-- in_lanes tells whether an item can be claimed.
local function in_lanes(item)
  local lane = lane_of(item)
  return call('LPOS', KEYS[o + LANE + lane], item) or call('ZSCORE', KEYS[o + BACK + lane], item)
end

-- unlane takes an item out of its lane, however often it is there, and returns how often that was.
local function unlane(item, lane)
  return call('LREM', KEYS[o + LANE + lane], 0, item) + call('ZREM', KEYS[o + BACK + lane], item)
end

-- walk tells whether one of the items of a key that are not held is what is looked for.
local function walk(c, found)
  local at = c and c.first
  for _ = 1, 1000000 do
    if not at or at == '' then return false end
    if found(at) then return true end
    at = call('HGET', KEYS[o + NEXT], seq_of(at))
  end
end

-- mend_chain makes the record of a key agree with what is held and with what can be claimed.
local function mend_chain(key)
  local c = chain_of(o, key)
  local held = 0
  for _, record in ipairs(call('HVALS', KEYS[o + LEASE])) do
    for item in string.gmatch(record, '\n([^\n]+)') do
      if key_of(item) == key then held = held + 1 end
    end
  end
  if not c and held == 0 then return false end
  c = c or {held = -1, offered = false, last = '0', first = ''}
  local offered, last = c.first ~= '' and in_lanes(c.first) and true or false, c.last
  walk(c, function(at) last = seq_of(at) end)
  local blocked = c.first ~= '' and (held > 0 or waits(o, c.first))
  if c.held == held and c.offered == offered and c.last == last and (offered or blocked or c.first == '') and (held > 0 or c.first ~= '') then return false end
  c.held, c.offered, c.last = held, offered, last
  front(o, key, c)
  return true
end

-- reachable tells whether an item is in the chain of its key.
local function reachable(key, seq)
  return walk(chain_of(o, key), function(at) return seq_of(at) == seq end)
end

local mend = {}

-- orphan: first is a sequence number, second its item: it is live and nowhere.
function mend.orphan()
  local place, s = where(o, first)
  if place == 'W' or place == 'T' then
    if call('ZSCORE', KEYS[o + TIMER], 'W' .. first) then return false end
    call('ZADD', KEYS[o + TIMER], s.till, 'W' .. first)
    timed(tonumber(s.till))
    return true
  end
  if place == 'D' then
    if call('ZSCORE', KEYS[o + DEAD], first) then return false end
    call('ZADD', KEYS[o + DEAD], call('HINCRBY', KEYS[o + GROUP], 'graves', 1), first)
    return true
  end
  local item, key = s and s.item or second, key_of(second)
  if place ~= 'R' or call('SISMEMBER', KEYS[o + GONE], first) == 1 or in_lanes(item) or in_lanes(second) then return false end
  if key and reachable(key, first) then return mend_chain(key) end
  if key then
    local c = chain_of(o, key)
    if c and c.offered and not in_lanes(c.first) then mend_chain(key) end
  end
  join(o, item)
  return true
end

-- ghost: first is an item in a lane whose message is gone, or not the group's, or what is no item at all.
function mend.ghost()
  local seq = seq_of(first)
  if not seq then
    local n = 0
    for lane = 0, 3 do n = n + unlane(first, lane) end
    return n > 0
  end
  if where(o, seq) == 'R' or call('SISMEMBER', KEYS[o + GONE], seq) == 1 then return false end
  if unlane(first, lane_of(first)) == 0 then return false end
  if where(o, seq) == '' then
    behead(o, first)
    if call('HEXISTS', BODIES, seq) == 0 then tally(o, 'cancelled', 1) end
  end
  return true
end

-- double: first is an item that is in a lane more than once, or in a lane and a list of what returned.
function mend.double()
  local n = unlane(first, lane_of(first))
  if n > 0 then call('ZADD', KEYS[o + BACK + lane_of(first)], place_of(first), first) end
  wake(o)
  return n > 1
end

-- lease: first is a token without an end: it ends now.
function mend.lease()
  if call('HEXISTS', KEYS[o + LEASE], first) == 0 or call('ZSCORE', KEYS[o + TIMER], 'L' .. first) then return false end
  call('ZADD', KEYS[o + TIMER], now, 'L' .. first)
  timed(now)
  return true
end

-- timer: first is a member without a lease or a wait.
function mend.timer()
  local id, letter = part(first, 2), part(first, 1, 1)
  if letter == 'L' then
    if call('HEXISTS', KEYS[o + LEASE], id) == 1 then return false end
  elseif letter == 'W' then
    local s = state_of(o, id)
    if s and (s.letter == 'W' or s.letter == 'T') then return false end
  end
  return call('ZREM', KEYS[o + TIMER], first) == 1
end

function mend.chain() return mend_chain(first) end

-- head: first is an item with a key in a lane, of which the chain of its key knows nothing.
function mend.head()
  local key = key_of(first)
  local c = chain_of(o, key)
  if c and c.first == first or where(o, seq_of(first)) ~= 'R' or not in_lanes(first) then return false end
  if not c then
    call('HSET', KEYS[o + CHAIN], key, '0 1 ' .. seq_of(first) .. ' ' .. first)
    mend_chain(key)
    return true
  end
  unlane(first, lane_of(first))
  insert(o, key, c, first)
  return true
end

-- link: first is the sequence number of a link that no chain has.
function mend.link()
  if where(o, first) ~= '' then return false end
  return call('HDEL', KEYS[o + NEXT], first) == 1
end

-- grave: first is the sequence number of a dead letter that is not dead.
function mend.grave()
  local s = state_of(o, first)
  if s and s.letter == 'D' then return false end
  call('HDEL', KEYS[o + RECORD], first)
  return call('ZREM', KEYS[o + DEAD], first) == 1
end

-- losses: first is the sequence number of a message that is gone, or dead.
function mend.losses()
  local place = where(o, first)
  if place ~= '' and place ~= 'D' then return false end
  return call('HDEL', KEYS[o + LOSSES], first) == 1
end

-- id: first is an id, second the item of its message. "stale id": the message of an id is gone.
function mend.id()
  if call('HEXISTS', BODIES, seq_of(second)) == 0 then return false end
  return call('HSETNX', IDS, first, second) == 1
end
mend['stale id'] = function()
  local entry = call('HGET', IDS, first)
  if not entry or call('HEXISTS', BODIES, seq_of(entry)) == 1 then return false end
  return call('HDEL', IDS, first) == 1
end

-- pending: first is a sequence number that is delayed or held only half: it is due now, or forgotten if its message is gone.
function mend.pending()
  if call('HEXISTS', BODIES, first) == 0 then
    call('HDEL', PENDING, first)
    return call('ZREM', DELAYED, first) + call('ZREM', HELD, first) > 0
  end
  if call('HEXISTS', PENDING, first) == 0 then return call('HSETNX', PENDING, first, second) == 1 end
  if call('ZSCORE', DELAYED, first) or call('ZSCORE', HELD, first) then return false end
  call('ZADD', DELAYED, now, first)
  timed(now)
  return true
end

-- foreign: first is a field among the bodies that is no sequence number: what is in it becomes an undecodable entry.
function mend.foreign()
  local raw = call('HGET', BODIES, first)
  if not raw then return false end
  spoil(call('HINCRBY', TOPIC, 'seq', 1), raw, 'it was stored as ' .. first .. ', which is no number of a message')
  return call('HDEL', BODIES, first) == 1
end

-- segment: first is the number of a segment, or what is listed among them and is none.
function mend.segment()
  local n, number, at = 0, tonumber(first), call('ZSCORE', SEGMENTS, first)
  if number and number .. '' == first then
    for seq = number * 1024, number * 1024 + 1023 do n = n + call('HEXISTS', BODIES, seq) end
  end
  local right = n > 0 and at and tonumber(at) == number or n == 0 and not at
  if right and n == tonumber(call('HGET', SIZES, first) or 0) then return false end
  if n == 0 then
    call('HDEL', SIZES, first)
    call('ZREM', SEGMENTS, first)
  else
    call('HSET', SIZES, first, n)
    call('ZADD', SEGMENTS, first, first)
  end
  return true
end

-- counts: what a group has in flight and waiting, counted again.
function mend.counts()
  local flying, waiting = 0, 0
  for _, record in ipairs(call('HVALS', KEYS[o + LEASE])) do
    local _, n = string.gsub(record, '\n', '')
    flying = flying + n
  end
  for _, member in ipairs(call('ZRANGE', KEYS[o + TIMER], 0, -1)) do
    if part(member, 1, 1) == 'W' then waiting = waiting + 1 end
  end
  local known = call('HMGET', KEYS[o + GROUP], 'inflight', 'waiting')
  if tonumber(known[1] or 0) == flying and tonumber(known[2] or 0) == waiting then return false end
  call('HSET', KEYS[o + GROUP], 'inflight', flying, 'waiting', waiting)
  return true
end

-- total: a counter of the topic (no group is named) or of a group, first, is off by second.
function mend.total()
  call('HINCRBY', o and KEYS[o + GROUP] or TOPIC, first, second)
  return true
end

local fixed = mend[what]()
commit()
return {fixed and 'fixed' or 'sound'}
