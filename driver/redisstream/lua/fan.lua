-- fan: messages become entries of the stream, for all groups.
local function fan(name, fields, pub, bytes, exp, cause, since)
  local id = call('XADD', STREAM, '*', unpack(fields))
  call('HSET', IDS, name, id)
  if exp > 0 or (cause or 0) > 0 or pub ~= now or fields[1] ~= 'v' then
    note(id, {pub = pub, bytes = bytes, exp = exp, cause = cause or 0, since = since, name = name})
  end
  if #groups() > 1 then call('HSET', LEFT, id, #groups()) end
  if exp > 0 then timer(EXPIRES, exp, id) end
  call('HSET', TOPIC, 'last', id)
  if lane_of(index(fields)) ~= 1 then call('HSET', TOPIC, 'prio', id) end
  for _, g in ipairs(groups()) do
    tally(g, 'received', 1)
    wake(g)
  end
  count('fanned', 1)
  return id
end

-- unlater takes a delayed or held message out of its place and returns it.
local function unlater(name)
  local m = unpacked(call('HGET', LATER, name))
  if not m then return nil end
  call('HDEL', LATER, name)
  call('ZREM', DELAYED, m.member)
  call('ZREM', HELD, m.member)
  call('ZREM', LATERS, name)
  call('ZREM', EXPIRES, 'L' .. name)
  return m
end

-- named returns the stream id of the message that a target names, by "i" and its id or "r" and the stream id; or "later" and its id.
local function named(target)
  local name = string.sub(target, 2)
  if string.sub(target, 1, 1) == 'r' then return name end
  return call('HGET', IDS, name), name
end

-- leave_later ends a message that was never due, counted under a field.
local function leave_later(name, m, field)
  if call('HGET', IDS, name) == 'later' then call('HDEL', IDS, name) end
  count(field, 1)
  count('messages', -1)
  count('bytes', -m.bytes)
end

-- due makes a delayed or held message an entry, which is due since a time, or now.
local function due(name, m, since) return fan(name, m.fields, m.pub, m.bytes, m.exp, m.cause, since) end

-- postpone keeps a message until a time, or "h" for as long as it is held.
local function postpone(name, m, when)
  local seq = sequence()
  m.member = string.format('%016.0f', seq) .. name
  call('HSET', LATER, name, cmsgpack.pack(m))
  call('HSET', IDS, name, 'later')
  call('ZADD', LATERS, seq, name)
  if when == 'h' then
    call('ZADD', HELD, now, m.member)
  else
    timer(DELAYED, when, m.member)
    for _, g in ipairs(groups()) do wake(g) end
  end
  if m.exp > 0 then timer(EXPIRES, m.exp, 'L' .. name) end
end
