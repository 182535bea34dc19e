-- chain: lanes, and the order of keys.
--
-- CHAIN has, for each key with messages that are not settled: how many are held, whether the first one that is not held
-- is offered in a lane, the sequence number of the last one, and the first one that is not held. NEXT leads from each
-- of those to the one behind it. What is held is in its lease only.

-- push puts an item at the tail of its lane.
local function push(o, item)
  if call('RPUSH', KEYS[o + LANE + lane_of(item)], item) == 1 then wake(o) end
end

-- offer puts an item at its old place in its lane. Those with keys may stand a little late in a list (see ack), so that one of them
-- at the end tells nothing about those without, whose order is kept.
local function offer(o, item)
  local lane = KEYS[o + LANE + lane_of(item)]
  local last = call('LINDEX', lane, -1)
  if not last or place_of(last) < place_of(item) and (key_of(item) or not key_of(last)) then
    call('RPUSH', lane, item)
    if not last then wake(o) end
  else
    call('ZADD', KEYS[o + BACK + lane_of(item)], place_of(item), item)
  end
end

local function chain_of(o, key)
  local v = call('HGET', KEYS[o + CHAIN], key)
  if not v then return nil end
  local held, offered, last, first = match(v, '^(%d+) (%d) (%d+) (.*)$')
  if not held then return nil end -- damaged: audit will tell
  return {held = tonumber(held), offered = offered == '1', last = last, first = first}
end

local function keep(o, key, c)
  call('HSET', KEYS[o + CHAIN], key, c.held .. (c.offered and ' 1 ' or ' 0 ') .. c.last .. ' ' .. c.first)
end

-- behind unlinks an item and returns the next one of its key that is not deleted, or nil.
local function behind(o, item)
  repeat
    local seq = seq_of(item)
    item = call('HGET', KEYS[o + NEXT], seq)
    if item then call('HDEL', KEYS[o + NEXT], seq) end
  until not item or not has(o + GONE) or call('SREM', KEYS[o + GONE], seq_of(item)) == 0
  return item
end

-- waits tells whether an item in a chain waits for a retry.
local function waits(o, item)
  if not has(o + STATE) then return false end
  local v = call('HGET', KEYS[o + STATE], seq_of(item))
  return v and match(v, '^%d+ %d+ %d+ %d+ (%a)') == 'W'
end

-- front lets the first item of a key go, if nothing of the key is held.
local function front(o, key, c)
  if not c.offered and c.first ~= '' and has(o + GONE) and call('SREM', KEYS[o + GONE], seq_of(c.first)) == 1 then
    c.first = behind(o, c.first) or ''
  end
  if c.held == 0 and c.first == '' then return call('HDEL', KEYS[o + CHAIN], key) end
  if c.held == 0 and not c.offered and not waits(o, c.first) then
    c.offered = true
    offer(o, c.first)
  end
  keep(o, key, c)
end

-- unhold ends that an item with a key is held.
local function unhold(o, item)
  local key = key_of(item)
  if not key then return end
  local c = chain_of(o, key)
  if not c then return end -- damaged: audit will tell
  c.held = math.max(0, c.held - 1)
  if c.held == 0 then front(o, key, c) else keep(o, key, c) end
end

-- insert puts an item among those of its key that are not held: at its place, or behind all.
local function insert(o, key, c, item, last)
  local seq = seq_of(item)
  if c.first == '' then
    c.first, c.last = item, seq
  elseif last then
    call('HSET', KEYS[o + NEXT], c.last, item)
    c.last = seq
  elseif not c.offered and place_of(item) < place_of(c.first) then
    call('HSET', KEYS[o + NEXT], seq, c.first)
    c.first = item
  else
    local at, passed, following = seq_of(c.first), 0
    while true do
      following = call('HGET', KEYS[o + NEXT], at)
      local place = following and place_of(following)
      if not place or place > place_of(item) or place <= passed then break end -- places grow, or a damaged chain has no end
      at, passed = seq_of(following), place
    end
    call('HSET', KEYS[o + NEXT], at, item)
    if following then call('HSET', KEYS[o + NEXT], seq, following) else c.last = seq end
  end
  front(o, key, c)
end

-- rejoin returns a held item to its place.
local function rejoin(o, item)
  local key = key_of(item)
  if not key then return offer(o, item) end
  local c = chain_of(o, key) or {held = 1, offered = false, last = '0', first = ''}
  c.held = math.max(0, c.held - 1)
  insert(o, key, c, item)
end

-- join adds an item that is not in its chain: behind all of its key, or at its place.
local function join(o, item, last)
  local key = key_of(item)
  if not key then
    if last then return push(o, item) end
    return offer(o, item)
  end
  insert(o, key, chain_of(o, key) or {held = 0, offered = false, last = '0', first = ''}, item, last)
end

-- behead removes the first item of a key that is not held, whether it is offered or waits.
local function behead(o, item)
  local key = key_of(item)
  if not key then return end
  local c = chain_of(o, key)
  if not c or c.first ~= item then return end
  c.first, c.offered = behind(o, item) or '', false
  front(o, key, c)
end

-- ahead returns the number of the item before one that is not held, nor the first of its key. That one waits, so that it was
-- claimed once and few are before it.
local function ahead(o, c, seq)
  local at, passed = seq_of(c.first), -1
  while at do
    local following = call('HGET', KEYS[o + NEXT], at)
    if not following then return nil end -- damaged: audit will tell
    local here, place = seq_of(following), place_of(following)
    if here == seq then return at end
    if place <= passed then return nil end -- a damaged chain has no end
    at, passed = here, place
  end
end

-- unlink removes an item of a key that is not held, nor the first of those.
local function unlink(o, key, c, seq)
  local at = ahead(o, c, seq)
  if not at then return end
  local rest = call('HGET', KEYS[o + NEXT], seq)
  call('HDEL', KEYS[o + NEXT], seq)
  if rest then return call('HSET', KEYS[o + NEXT], at, rest) end
  call('HDEL', KEYS[o + NEXT], at)
  c.last = at
  keep(o, key, c)
end

-- sweep takes deleted items off the head of a lane, so that a lane that is not empty has something to claim.
local function sweep(o, lane)
  if not has(o + GONE) then return end
  while true do
    local item = call('LINDEX', KEYS[o + LANE + lane], 0)
    if not item or call('SREM', KEYS[o + GONE], seq_of(item)) == 0 then return end
    call('LPOP', KEYS[o + LANE + lane])
    behead(o, item)
  end
end

-- withdraw makes sure that a ready item is not claimed. In lanes and chains it stays, marked, until it comes to the front.
local function withdraw(o, seq)
  call('SADD', KEYS[o + GONE], seq)
  made(o + GONE)
  for lane = 0, 3 do sweep(o, lane) end
end

-- recover takes what withdraw left of a message out of its lane and its key, so that it can join another. Of a message
-- without a key that was delayed the item is not known: the mark stays, and takes the first of the two.
local function recover(o, item)
  local seq, key = seq_of(item), key_of(item)
  if not has(o + GONE) or call('SREM', KEYS[o + GONE], seq) == 0 then return end
  local c = key and chain_of(o, key)
  if c and (c.first == '' or seq_of(c.first) ~= seq) then return unlink(o, key, c, seq) end
  if c then item = c.first end
  local lane = lane_of(item)
  if call('ZREM', KEYS[o + BACK + lane], item) + call('LREM', KEYS[o + LANE + lane], 1, item) == 0 and not c then
    call('SADD', KEYS[o + GONE], seq)
  end
  behead(o, item)
end
