-- state: what a group knows of the messages that it has read from the stream and not settled. Its record has l lane, k key,
-- p place, f failed attempts, x lost leases, r rounds, c cause of the next delivery, s letter (R ready, I in flight, W waits,
-- D dead), t until when it waits, tail (joins the tail when due), o token, i instance, w consumer in the pending list, n ready
-- since, e expired in flight.
local RETRY, LOST, RELEASED, REPLAY = 1, 2, 3, 5

local function state(g, id)
  local v = call('HGET', of(g, 'state'), id)
  return v and cmsgpack.unpack(v) or nil
end
local function save(g, id, s) call('HSET', of(g, 'state'), id, cmsgpack.pack(s)) end

local orders = {}
local function strict(g, s)
  if s.k == '' then return false end
  if orders[g] == nil then orders[g] = call('HGET', GROUPS, g) ~= '1' end
  return orders[g]
end

-- Members of "chain" (of a key: ready, or in strict order waiting) and "flight" (of a key: in flight), sorted by key and place.
local function range_of(key) return #key .. ':' .. key .. '/' end
local function member(s, id) return range_of(s.k) .. string.format('%016.0f', s.p) .. '/' .. id end
local function first_of(g, set, key, n)
  local list = call('ZRANGEBYLEX', of(g, set), '[' .. range_of(key), '(' .. range_of(key) .. '~', 'LIMIT', 0, n)
  for i, m in ipairs(list) do list[i] = match(m, '/([%d-]+)$') end
  return list
end

-- front sees to it that the first message of a key is offered in its lane, if none of the key is held and it does not wait.
local function front(g, key)
  local was, want, s = call('HGET', of(g, 'offer'), key), nil, nil
  local head = first_of(g, 'chain', key, 1)[1]
  if head and #first_of(g, 'flight', key, 1) == 0 then
    s = state(g, head)
    if s and s.s == 'R' then want = head end
  end
  if was and was ~= want then
    for lane = 0, 3 do call('ZREM', of(g, 'lane' .. lane), was) end
    call('HDEL', of(g, 'offer'), key)
  end
  if want then
    call('ZADD', of(g, 'lane' .. s.l), s.p, want)
    if was ~= want then call('HSET', of(g, 'offer'), key, want) end
    wake(g)
  end
end

-- enter makes a message ready at its place.
local function enter(g, id, s)
  s.s, s.t, s.o, s.i, s.tail = 'R', nil, nil, nil, nil
  save(g, id, s)
  if s.k == '' then
    call('ZADD', of(g, 'lane' .. s.l), s.p, id)
    return wake(g)
  end
  call('ZADD', of(g, 'chain'), 0, member(s, id))
  front(g, s.k)
end

-- take_out removes a message that is ready, waits or is in flight from every queue; its state stays.
local function take_out(g, id, s)
  if s.s == 'R' then
    if s.k == '' then return call('ZREM', of(g, 'lane' .. s.l), id) end
    call('ZREM', of(g, 'chain'), member(s, id))
  elseif s.s == 'W' then
    call('ZREM', of(g, 'wait'), id)
    if s.k == '' then return end
    call('ZREM', of(g, 'chain'), member(s, id))
  elseif s.s == 'I' then
    call('ZREM', of(g, 'lease'), id)
    if s.k == '' then return end
    call('ZREM', of(g, 'flight'), member(s, id))
  end
  front(g, s.k)
end

-- unskip forgets that groups skip an entry which is gone.
local function unskip(id)
  for _, g in ipairs(groups()) do
    if has(of(g, 'skip')) then call('SREM', of(g, 'skip'), id) end
  end
end

-- vanish removes an entry that neither a group nor a dead letter needs.
local function vanish(id, m)
  unskip(id)
  call('XDEL', STREAM, id)
  if has(EXPIRES) then call('ZREM', EXPIRES, id) end
  if has(KEPT) then call('ZREM', KEPT, id) end
  if has(GRAVES) and call('HEXISTS', GRAVES, id) == 1 then return end
  call('HDEL', META, id)
  if m and call('HGET', IDS, m.name) == id then call('HDEL', IDS, m.name) end
end

-- tidy forgets an entry of which only a dead letter was left.
local function tidy(id)
  if call('HEXISTS', LEFT, id) == 0 and not call('ZSCORE', KEPT, id) then vanish(id, meta(id)) end
end

local keep

-- drop says that one more group does not need an entry.
local function drop(id)
  if call('HINCRBY', LEFT, id, -1) > 0 then return end
  call('HDEL', LEFT, id)
  local m = meta(id)
  count('messages', -1)
  if m then count('bytes', -m.bytes) end
  keep = keep or tonumber(call('HGET', TOPIC, 'keep') or 0)
  if keep > 0 and #call('XRANGE', STREAM, id, id) > 0 then
    call('ZREM', EXPIRES, id)
    return call('ZADD', made(KEPT), now + keep, id)
  end
  vanish(id, m)
end

-- finish ends a message for a group, counted under a field. It is in no queue any more.
local function finish(g, id, field)
  tally(g, field, 1)
  call('HDEL', of(g, 'state'), id)
  if has(of(g, 'history')) then call('HDEL', of(g, 'history'), id) end
  if has(of(g, 'edited')) then call('HDEL', of(g, 'edited'), id) end
  if has(of(g, 'off')) then call('ZREM', of(g, 'off'), id) end
  call('XACK', STREAM, g, id)
  drop(id)
end

-- content returns the fields of a message as a group sees it, or nil.
local function content(g, id)
  local edited = has(of(g, 'edited')) and call('HGET', of(g, 'edited'), id)
  if edited then return cmsgpack.unpack(edited) end
  local entry = call('XRANGE', STREAM, id, id)[1]
  return entry and entry[2] or nil
end

-- bury makes a message a dead letter of its group, whole.
local function bury(g, id, s, instance, failure)
  local fields = content(g, id)
  call('HSET', made(of(g, 'edited')), id, cmsgpack.pack(fields or {}))
  s.s, s.o, s.t = 'D', nil, nil
  save(g, id, s)
  call('ZADD', of(g, 'dead'), call('HINCRBY', of(g, 'group'), 'graves', 1), id)
  call('HSET', of(g, 'record'), id, cmsgpack.pack({int(now), instance, failure}))
  call('HINCRBY', made(GRAVES), id, 1)
  call('ZREM', of(g, 'off'), id)
  call('XACK', STREAM, g, id)
  drop(id)
end

-- unbury forgets that a message is dead in a group.
local function unbury(g, id)
  call('ZREM', of(g, 'dead'), id)
  call('HDEL', of(g, 'record'), id)
  if call('HINCRBY', GRAVES, id, -1) <= 0 then call('HDEL', GRAVES, id) end
end

-- expire ends a message that is past its TTL and in no queue of the group.
local function expire(g, id, s)
  if call('HGET', TOPIC, 'expired_dead') == '1' then return bury(g, id, s, '', '') end
  finish(g, id, 'expired')
end

-- come_back makes a message that is in no queue ready, or ends it if it expired meanwhile.
local function come_back(g, id, s)
  if s.e then return expire(g, id, s) end
  enter(g, id, s)
end

-- wait makes a message that is in no queue wait. In strict order it keeps its place in its key, unless it is to join the tail.
local function wait(g, id, s, due, tail)
  if s.e then return expire(g, id, s) end
  s.s, s.t, s.tail, s.o, s.i = 'W', due, tail or nil, nil, nil
  save(g, id, s)
  call('ZADD', of(g, 'wait'), due, id)
  if strict(g, s) and not tail then call('ZADD', of(g, 'chain'), 0, member(s, id)) end
  if s.k ~= '' then front(g, s.k) end
  wake(g)
end

-- release_behind returns the later held messages of a strict key, uncounted, and tells their ids.
local function release_behind(g, s, ended)
  if not strict(g, s) then return end
  for _, id in ipairs(first_of(g, 'flight', s.k, 100000)) do
    local x = state(g, id)
    if x and x.p > s.p then
      take_out(g, id, x)
      x.c = RELEASED
      come_back(g, id, x)
      ended[#ended + 1] = id
    end
  end
end

-- place returns a place behind everything that was published so far.
local function place() return call('HINCRBY', TOPIC, 'seq', 1) end

local function index(fields)
  local f = {}
  for i = 1, #fields, 2 do f[fields[i]] = fields[i + 1] end
  return f
end
local function lane_of(f)
  local p = tonumber(f.pri or 0) or 0
  return math.max(0, math.min(3, floor(p) + 1))
end

-- unread tells whether a group has yet to read an entry.
local function unread(g, id)
  local last = call('HGET', of(g, 'group'), 'last') or '0-0'
  return before(last, id) and (not has(of(g, 'skip')) or call('SISMEMBER', of(g, 'skip'), id) == 0)
end

-- skip ends an entry that a group has not read, counted under a field.
local function skip(g, id, field)
  tally(g, field, 1)
  call('SADD', made(of(g, 'skip')), id)
  drop(id)
end

-- spoil moves an entry that cannot be decoded to the parse errors, whole.
local function spoil(id, fields, problem)
  call('HSET', RAW, id, cmsgpack.pack({problem, fields}))
  call('ZADD', INVALID, place(), id)
  call('XDEL', STREAM, id)
end

-- adopt takes on an entry that somebody added without us.
local function adopt(g, id, fields)
  local f, bytes = index(fields), 0
  if not f.body then
    spoil(id, fields, 'the entry has no field "body"')
    return nil
  end
  for _, v in ipairs(fields) do bytes = bytes + #v end
  local name = f.id or id
  call('HSET', META, id, place() .. ' ' .. int(halves(id)) .. ' ' .. bytes .. ' 0 0 ' .. name)
  call('HSETNX', IDS, name, id)
  local n = 0
  for _, other in ipairs(groups()) do
    if other == g or unread(other, id) then
      n = n + 1
      tally(other, 'received', 1)
    end
  end
  call('HSET', LEFT, id, n)
  count('published', 1)
  count('fanned', 1)
  count('messages', 1)
  count('bytes', bytes)
  return meta(id)
end

-- fetch reads up to n entries from the stream into the group's lanes, so that priorities and keys can be seen.
local function fetch(g, n, consumer)
  local reply = call('XREADGROUP', 'GROUP', g, consumer, 'COUNT', n, 'STREAMS', STREAM, '>')
  if not reply then return 0 end
  local entries, keys = reply[1][2], {}
  for _, entry in ipairs(entries) do
    local id, fields = entry[1], entry[2]
    if has(of(g, 'skip')) and call('SREM', of(g, 'skip'), id) == 1 then
      call('XACK', STREAM, g, id)
    else
      local m = meta(id) or adopt(g, id, fields)
      if not m then
        call('XACK', STREAM, g, id)
      else
        local f = index(fields)
        local s = {l = lane_of(f), k = f.key or '', p = m.place, f = 0, x = 0, r = 0, c = m.cause, s = 'R', n = (halves(id)), w = consumer}
        save(g, id, s)
        if s.k == '' then
          call('ZADD', of(g, 'lane' .. s.l), s.p, id)
        else
          call('ZADD', of(g, 'chain'), 0, member(s, id))
          keys[s.k] = true
        end
      end
    end
  end
  call('HSET', of(g, 'group'), 'last', entries[#entries][1])
  for key in pairs(keys) do front(g, key) end
  return #entries
end
