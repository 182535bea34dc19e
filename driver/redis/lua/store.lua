-- store: messages in the topic, whoever needs them, and the counters. It needs identify and segments.
local counts, tallies, emptied, woken = {}, {}, {}, {}

-- count and tally note changes of counters, of the topic and of a group; commit writes them.
local function count(field, n) counts[field] = (counts[field] or 0) + n end
local function tally(o, field, n)
  local t = tallies[o]
  if not t then t = {} tallies[o] = t end
  t[field] = (t[field] or 0) + n
end

-- attribute returns a field of a group's hash, read once.
local attributes = {}
local function attribute(o, field)
  local a = attributes[o]
  if not a then
    local v = call('HMGET', KEYS[o + GROUP], 'i', 'o', 'name', 'split')
    a = {i = v[1], o = v[2], name = v[3], split = v[4]}
    attributes[o] = a
  end
  return a[field]
end

-- has tells whether a rarely used key of a group exists; scripts that create it say so with made.
local existing = {}
local function has(k)
  local e = existing[k]
  if e == nil then
    e = call('EXISTS', KEYS[k]) == 1
    existing[k] = e
  end
  return e
end
local function made(k) existing[k] = true end

local ttls
local function overdue(seq)
  if ttls == nil then ttls = call('EXISTS', EXPIRES) == 1 end
  if not ttls then return false end
  local at = call('ZSCORE', EXPIRES, seq)
  return at and tonumber(at) <= now
end

-- erase removes a message that nobody needs any more.
local function erase(seq, id, own)
  call('HDEL', BODIES, seq)
  if id and match(call('HGET', IDS, id) or '', '^%d(%d+)') == seq then
    call('HDEL', IDS, id)
    if own then remember(id, seq) end
  end
  call('HDEL', LIVE, seq)
  call('HDEL', GRAVES, seq)
  call('ZREM', EXPIRES, seq)
  local segment = floor(tonumber(seq) / 1024)
  emptied[segment] = (emptied[segment] or 0) + 1
end

local function without(set, member)
  local i = find(set, member, 1, true)
  return i and part(set, 1, i - 1) .. part(set, i + 1) or set
end

-- item_of makes an item of a message that is known by its number only. Its lane and key are not known.
local function item_of(seq, body)
  body = body or call('HGET', BODIES, seq)
  local id = body and identify(body)
  local entry = id and call('HGET', IDS, id)
  return entry and seq_of(entry) == seq and entry or '1' .. seq .. '@0'
end

-- vanish removes a message that belongs to no group any more.
local function vanish(seq)
  local body = call('HGET', BODIES, seq)
  local id, own
  if body then id, own = identify(body) end
  erase(seq, id, own)
end

-- unpend takes a message out of what is delayed or held.
local function unpend(seq)
  call('HDEL', PENDING, seq)
  call('ZREM', DELAYED, seq)
  call('ZREM', HELD, seq)
end

-- leave_pending ends a message that was never due, counted under a field.
local function leave_pending(seq, field)
  unpend(seq)
  count(field, 1)
  count('messages', -1)
  count('bytes', -call('HSTRLEN', BODIES, seq))
  vanish(seq)
end

-- Entries that cannot be decoded are kept whole, with when that was found and why.
local function spoil(seq, body, problem)
  call('ZADD', INVALID, seq, seq)
  call('HSET', RAW, seq, body)
  call('HSET', PROBLEMS, seq, now .. '\n' .. problem)
end
local function unspoil(seq)
  call('HDEL', RAW, seq)
  call('HDEL', PROBLEMS, seq)
  return call('ZREM', INVALID, seq) == 1
end

-- unlive says that a group has settled a message, for good or as a dead letter (dead: its letter).
local function unlive(letter, seq, dead)
  local live = call('HGET', LIVE, seq)
  live = live and without(live, letter) or ''
  if dead then call('HSET', GRAVES, seq, (call('HGET', GRAVES, seq) or '') .. letter) end
  if live ~= '' then return call('HSET', LIVE, seq, live) end
  count('messages', -1)
  count('bytes', -call('HSTRLEN', BODIES, seq))
  if dead or call('HEXISTS', GRAVES, seq) == 1 then return call('HSET', LIVE, seq, '') end
  vanish(seq)
end

-- wake announces, at the end, that a group has something to claim that it had not.
local function wake(o) woken[o] = true end

-- commit writes counters and announcements. It is the last thing a script does.
local nearest
local function commit()
  for field, n in pairs(counts) do
    if n ~= 0 then call('HINCRBY', TOPIC, field, n) end
  end
  for o, t in pairs(tallies) do
    for field, n in pairs(t) do
      if n ~= 0 then call('HINCRBY', KEYS[o + GROUP], field, n) end
    end
  end
  for segment, n in pairs(emptied) do resize(segment, -n) end
  for o in pairs(woken) do call('PUBLISH', TOPIC, attribute(o, 'name')) end
  if nearest then call('PUBLISH', TOPIC, '@' .. nearest) end
end

-- timed notes that something new is due at a time, so that schedulers that sleep longer wake up.
local function timed(at)
  if not nearest or at < nearest then nearest = at end
end
