-- state: what a group knows of a message that it has read from the stream and not settled: l lane, k key, p place, f failed
-- attempts, x lost leases, r rounds, c cause of the next delivery, s letter (R ready, I in flight, W waits, D dead), t until when it
-- waits, tail (joins the tail when due), o token, alone (its lease is its own), i instance, w consumer in the pending list, n ready
-- since, e expired in flight, b token of the delivery under way if it has begun, h a lease was lost at least once, u tokens of lost deliveries
-- that had begun and counted, whose holders were not heard of since. There is a record of it only once something happened that the stream does not tell: a message that was
-- read and is ready, or in flight for the first time, has none.
local RETRY, LOST, RELEASED, REPLAY = 1, 2, 3, 5

local function lane_of(f)
  local p = tonumber(f.pri or 0) or 0
  return math.max(0, math.min(3, floor(p) + 1))
end

-- read_so_far is the last entry that a group has taken on.
local function read_so_far(g) return valid(call('HGET', of(g, 'group'), 'last') or '') or '0-0' end

-- unread tells whether a group has yet to read an entry. It never reads one of which only dead letters, or what came of them, are left.
local function unread(g, id)
  local last = read_so_far(g)
  return before(last, id) and (not has(of(g, 'skip')) or call('SISMEMBER', of(g, 'skip'), id) == 0) and entry_of(id)
end

-- fresh is the state of a message to which nothing has happened in a group.
local function fresh(id, fields)
  local f, known = index(fields or {}), call('HGET', META, id)
  local cause, since = match(known or '', '^%d+ %d+ %d+ (%d+)@?(%d*) ')
  return {l = lane_of(f), k = f.key or '', p = spot(id), f = 0, x = 0, r = 0, c = tonumber(cause or 0), s = 'R', n = tonumber(since) or halves(id)}
end

-- record_of reads a record, or tells nil where it makes no sense.
local KINDS = {l = 'number', k = 'string', p = 'string', f = 'number', x = 'number', r = 'number', c = 'number', s = 'string', n = 'number'}
local function record_of(v)
  local s = unpacked(v)
  for name, kind in pairs(s and KINDS or {}) do
    if type(s[name]) ~= kind then return nil end
  end
  return s
end

-- one_by_one sees to it that what a group has in flight is noted message by message.
local alone_noted = {}
local function one_by_one(g)
  if alone_noted[g] then return end
  alone_noted[g] = true
  spread(of(g, ''))
end

local function state(g, id)
  one_by_one(g)
  local v, hold = call('HGET', of(g, 'state'), id), call('HGET', of(g, 'flight'), id)
  local s = v and record_of(v)
  if s then
    s.kept = true
  else
    if not valid(id) then return nil end
    local pending = call('XPENDING', STREAM, g, id, id, 1)[1]
    if not pending or not hold and before(read_so_far(g), id) then return nil end
    s = fresh(id, entry_of(id))
    s.w = pending[2]
    if hold then s.s, s.i = 'I', s.w end
  end
  if hold then
    s.o, s.alone = match(hold, '^([^/*]*)(%*?)/')
    s.alone = s.alone == '*'
  end
  return s
end

local function save(g, id, s)
  s.o, s.alone, s.kept = nil, nil, nil
  call('HSET', made(of(g, 'state')), id, cmsgpack.pack(s))
  s.kept = true
end

local orders = {}
local function strict(g, s)
  if s.k == '' then return false end
  if orders[g] == nil then orders[g] = call('HGET', GROUPS, g) ~= '1' end
  return orders[g]
end

-- Members of "chain" (of a key: ready, or in strict order waiting) are sorted by key and place; those of lanes by place.
local function range_of(key) return #key .. ':' .. key .. '/' end
local function seat(s, id) return s.p .. '/' .. id end
local function member(s, id) return range_of(s.k) .. seat(s, id) end
local function id_in(seat_text) return string.sub(seat_text, SPOT + 2) end
local function first_of(g, key, n)
  local from = range_of(key)
  local list = call('ZRANGEBYLEX', of(g, 'chain'), '[' .. from, '(' .. from .. '~', 'LIMIT', 0, n)
  for i, m in ipairs(list) do list[i] = string.sub(m, #from + 1) end
  return list
end

-- front sees to it that the first message of a key is offered in its lane, if none of the key is held and it does not wait. "offer" has
-- of every key with members in the chain what is offered: the lane and the seat, or '-'.
local function front(g, key)
  local was, want = call('HGET', of(g, 'offer'), key), nil
  local head = first_of(g, key, 1)[1]
  local s = head and state(g, id_in(head))
  while head and not s do -- the stream lost it
    call('ZREM', of(g, 'chain'), range_of(key) .. head)
    head = first_of(g, key, 1)[1]
    s = head and state(g, id_in(head))
  end
  if head then want = s.s == 'R' and call('HEXISTS', of(g, 'busy'), key) == 0 and s.l .. head or '-' end
  if was == want or not was and not want then return end
  if was and was ~= '-' then call('ZREM', of(g, 'lane' .. string.sub(was, 1, 1)), string.sub(was, 2)) end
  if not want then return call('HDEL', of(g, 'offer'), key) end
  call('HSET', of(g, 'offer'), key, want)
  if want ~= '-' then
    call('ZADD', of(g, 'lane' .. string.sub(want, 1, 1)), 0, string.sub(want, 2))
    wake(g)
  end
end

-- line puts a ready message into its queue.
local function line(g, id, s)
  if s.k == '' then
    call('ZADD', of(g, 'lane' .. s.l), 0, seat(s, id))
    return wake(g)
  end
  call('ZADD', of(g, 'chain'), 0, member(s, id))
  front(g, s.k)
end

-- enter makes a message to which something has happened ready at its place.
local function enter(g, id, s)
  s.s, s.t, s.i, s.tail, s.b = 'R', nil, nil, nil, nil
  save(g, id, s)
  line(g, id, s)
end

-- unhold ends the lease of a message in flight; its key is not looked at.
local function unhold(g, id, s)
  call('HDEL', of(g, 'flight'), id)
  if s.alone then
    call('ZREM', of(g, 'lease'), '*' .. id)
  elseif s.o and call('HINCRBY', of(g, 'claims'), '#' .. s.o, -1) <= 0 then
    call('HDEL', of(g, 'claims'), s.o, '#' .. s.o)
    call('ZREM', of(g, 'lease'), s.o)
  end
  if s.k == '' then return end
  local rest = {}
  for x in string.gmatch(call('HGET', of(g, 'busy'), s.k) or '', '%S+') do
    if x ~= id then rest[#rest + 1] = x end
  end
  if #rest == 0 then call('HDEL', of(g, 'busy'), s.k) else call('HSET', of(g, 'busy'), s.k, table.concat(rest, ' ')) end
end

-- take_out removes a message that is ready, waits or is in flight from every queue; its record stays.
local function take_out(g, id, s)
  if s.s == 'R' then
    if s.k == '' then return call('ZREM', of(g, 'lane' .. s.l), seat(s, id)) end
    call('ZREM', of(g, 'chain'), member(s, id))
  elseif s.s == 'W' then
    call('ZREM', of(g, 'wait'), id)
    if s.k == '' then return end
    call('ZREM', of(g, 'chain'), member(s, id))
  elseif s.s == 'I' then
    unhold(g, id, s)
    if s.k == '' then return end
  end
  front(g, s.k)
end

-- unskip forgets that groups skip an entry which is gone. Where it is pending an owner has read it and not taken it on: admit forgets it.
local function unskip(id)
  for _, g in ipairs(groups()) do
    if has(of(g, 'skip')) and not call('XPENDING', STREAM, g, id, id, 1)[1] then call('SREM', of(g, 'skip'), id) end
  end
end

-- undone forgets how groups settled an entry which is gone.
local function undone(id)
  for _, g in ipairs(groups()) do
    if has(of(g, 'done')) then call('HDEL', of(g, 'done'), id) end
  end
end

-- vanish removes an entry that neither a group nor a dead letter needs.
local function vanish(id, m)
  unskip(id)
  undone(id)
  call('XDEL', STREAM, id)
  if has(EXPIRES) then call('ZREM', EXPIRES, id) end
  if has(KEPT) then call('ZREM', KEPT, id) end
  if has(GRAVES) and call('HEXISTS', GRAVES, id) == 1 then return end
  call('HDEL', META, id)
  if m and call('HGET', IDS, m.name) == id then call('HDEL', IDS, m.name) end
end

-- left tells how many groups need an entry. Nothing is written of one that only one group needs.
local function left(id)
  local v = call('HGET', LEFT, id)
  if v and tonumber(v) then return tonumber(v) end
  if has(KEPT) and call('ZSCORE', KEPT, id) or not entry_of(id) then return 0 end
  return 1
end

-- need says that one more group needs an entry.
local function need(id, m)
  local n = left(id)
  call('HSET', LEFT, id, n + 1)
  if n > 0 then return end
  if has(KEPT) then call('ZREM', KEPT, id) end
  count('messages', 1)
  count('bytes', m.bytes)
end

-- tidy forgets an entry of which only a dead letter was left.
local function tidy(id)
  if left(id) == 0 and not call('ZSCORE', KEPT, id) then vanish(id, meta(id)) end
end

-- shown tells whether a group that has no state of a message sees it as done: it is kept, and was not deleted there, of which '' in "done" tells.
local function shown(g, id) return has(KEPT) and call('ZSCORE', KEPT, id) and call('HGET', of(g, 'done'), id) ~= '' end

local keep
local function keeps()
  keep = keep or tonumber(call('HGET', TOPIC, 'keep') or 0)
  return keep > 0
end

-- drop says that one group less needs an entry.
local function drop(id)
  local n = left(id) - 1
  if n > 0 then return call('HSET', LEFT, id, n) end
  local m = meta(id)
  call('HDEL', LEFT, id)
  count('messages', -1)
  if m then count('bytes', -m.bytes) end
  if keeps() and entry_of(id) then
    if has(EXPIRES) then call('ZREM', EXPIRES, id) end
    return timer(KEPT, now + keep, id)
  end
  vanish(id, m)
end

-- forget drops what a group knows of a message.
local function forget(g, id)
  for _, name in ipairs({'state', 'history', 'edited'}) do
    if has(of(g, name)) then call('HDEL', of(g, name), id) end
  end
end

-- finish ends a message for a group, counted under a field. It is in no queue any more. Where settled messages are kept
-- it notes when that was, how long the handler took (in nanoseconds, as text) and whose it was, if there was one.
local function finish(g, id, field, took, instance)
  tally(g, field, 1)
  forget(g, id)
  if has(of(g, 'off')) then call('ZREM', of(g, 'off'), id) end
  call('XACK', STREAM, g, id)
  if keeps() then call('HSET', made(of(g, 'done')), id, int(now) .. ' ' .. (took or '0') .. ' ' .. (instance or '')) end
  drop(id)
end

-- cancel ends a message wherever it is in a group, unless it is not there, or dead.
local function cancel(g, id, s)
  if not s or s.s == 'D' then return end
  take_out(g, id, s)
  finish(g, id, 'cancelled')
end

-- content returns the fields of a message as a group sees it, or nil.
local function content(g, id)
  local edited = has(of(g, 'edited')) and call('HGET', of(g, 'edited'), id)
  return edited and unpacked(edited) or entry_of(id)
end

-- bury makes a message a dead letter of its group, whole. What the group has not taken on stays pending, if an owner has read it.
local function bury(g, id, s, instance, failure, untaken)
  local m = meta(id)
  if m then note(id, m) end
  call('HSET', made(of(g, 'edited')), id, cmsgpack.pack(content(g, id) or {}))
  s.s, s.t, s.i, s.b, s.u = 'D', nil, nil, nil, nil
  save(g, id, s)
  call('ZADD', of(g, 'dead'), call('HINCRBY', of(g, 'group'), 'graves', 1), id)
  call('HSET', of(g, 'record'), id, cmsgpack.pack({int(now), instance, failure}))
  call('HINCRBY', made(GRAVES), id, 1)
  call('ZREM', of(g, 'off'), id)
  if not untaken then call('XACK', STREAM, g, id) end
  drop(id)
end

-- died tells whether a message is the dead letter of that many deaths.
local function died(s, death) return s.s == 'D' and s.r + 1 == tonumber(death) end

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
  s.s, s.t, s.tail, s.i, s.b = 'W', due, tail or nil, nil, nil
  save(g, id, s)
  timer(of(g, 'wait'), due, id)
  if strict(g, s) and not tail then call('ZADD', of(g, 'chain'), 0, member(s, id)) end
  if s.k ~= '' then front(g, s.k) end
  wake(g)
end

-- lose notes that the lease of a message was lost. The first time that counts; later only if the delivery had begun, and until its holder is
-- heard of.
local REMEMBERED = 16
local function lose(s)
  if s.b or not s.h and s.x == 0 then s.x = s.x + 1 end
  if s.b then
    s.u = s.u or {}
    table.insert(s.u, s.b)
    if #s.u > REMEMBERED then table.remove(s.u, 1) end
  end
  s.h, s.b, s.c = true, nil, LOST
end

-- release_behind returns the later held messages of a strict key, uncounted, and tells their ids. No handler has seen them, so that without
-- a cause they keep their own.
local function release_behind(g, s, ended, cause)
  if not strict(g, s) then return end
  for id in string.gmatch(call('HGET', of(g, 'busy'), s.k) or '', '%S+') do
    local x = state(g, id)
    if x and x.s == 'I' and x.p > s.p then
      take_out(g, id, x)
      x.c = cause or x.c
      come_back(g, id, x)
      ended[#ended + 1] = id
    end
  end
end

-- skip ends an entry that a group has not read, counted under a field.
local function skip(g, id, field)
  tally(g, field, 1)
  call('SADD', made(of(g, 'skip')), id)
  drop(id)
end
