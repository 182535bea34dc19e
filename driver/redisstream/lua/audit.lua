-- audit: looks at some of a partition, and with "1" repairs what is wrong with it: first at every message (s those in the stream, o those
-- beside it), whether it is where its state says; then at every structure (g), whether what is in it belongs there.
-- Fragments: head, types, there, spread, state, fan, advance, read, sweep, belongs, numbers.
-- ARGV: 1 partitions, 2 "", 3 "1" to repair, 4 cursor.
-- Returns {"stale"} or {"ok", how many were looked at, list of {kind, group, id, text, "1" if repaired}, counts found, cursor or "",
--   counters of the topic and its groups}: what should be found, and what tells that something happened meanwhile.
if ARGV[4] == '' then numbers() end
advance(1000)
for _, g in ipairs(groups()) do one_by_one(g) end
local checked = 0
local phase, last, seq, at = sweep(ARGV[4])

-- redeliver makes a message ready that a group has lost.
local function redeliver(g, id)
  local s = fresh(id, entry_of(id))
  call('XCLAIM', STREAM, g, 'ferry', 0, id, 'FORCE', 'JUSTID')
  s.c, s.n = LOST, now
  enter(g, id, s)
end

-- misplaced looks whether a message is where its state says.
local function misplaced(g, id, s)
  local token_lease = s.s == 'I' and s.o and call('ZSCORE', of(g, 'lease'), s.alone and '*' .. id or s.o)
  if s.s ~= 'D' and not content(g, id) then
    problem('lost', g, id, 'its content is gone', function() cancel(g, id, s) end)
  elseif s.s == 'W' and not call('ZSCORE', of(g, 'wait'), id) then
    problem('orphan', g, id, 'waits without a time', function() wait(g, id, s, s.t or now, s.tail) end)
  elseif s.s == 'W' and strict(g, s) and not s.tail and not call('ZSCORE', of(g, 'chain'), member(s, id)) then
    problem('orphan', g, id, 'waits, but not in its key', function() line(g, id, s) end)
  elseif s.s == 'D' and not call('ZSCORE', of(g, 'dead'), id) then
    problem('orphan', g, id, 'dead, but not among the dead letters', function() call('ZADD', of(g, 'dead'), call('HINCRBY', of(g, 'group'), 'graves', 1), id) end)
  elseif s.s == 'R' and s.k == '' and not call('ZSCORE', of(g, 'lane' .. s.l), seat(s, id)) then
    problem('orphan', g, id, 'ready in no lane', function() line(g, id, s) end)
  elseif s.s == 'R' and s.k ~= '' and not call('ZSCORE', of(g, 'chain'), member(s, id)) then
    problem('orphan', g, id, 'ready, but not in its key', function() line(g, id, s) end)
  elseif s.s == 'I' and not token_lease then
    problem('orphan', g, id, 'in flight without a lease', function()
      take_out(g, id, s)
      lose(s)
      come_back(g, id, s)
    end)
  elseif s.s == 'I' and not s.alone and not lists(of(g, 'claims'), s.o, id) then
    problem('orphan', g, id, 'in flight, but not in its claim', function() -- its lease becomes its own
      call('HSET', of(g, 'flight'), id, s.o .. '*/' .. s.k)
      timer(of(g, 'lease'), token_lease, '*' .. id)
    end)
  end
  if s.s == 'I' and s.k ~= '' and not lists(of(g, 'busy'), s.k, id) then
    problem('orphan', g, id, 'in flight, but its key is free', function()
      local busy = call('HGET', of(g, 'busy'), s.k)
      call('HSET', of(g, 'busy'), s.k, busy and busy .. ' ' .. id or id)
      front(g, s.k)
    end)
  end
  if s.s == 'D' then return end
  if not entry_of(id) or call('ZSCORE', of(g, 'off'), id) then
    if not entry_of(id) and not call('ZSCORE', of(g, 'off'), id) then
      problem('orphan', g, id, 'neither in the stream nor beside it', function() call('ZADD', made(of(g, 'off')), sequence(), id) end)
    end
  elseif not call('XPENDING', STREAM, g, id, id, 1)[1] then
    problem('orphan', g, id, 'not pending', function() call('XCLAIM', STREAM, g, s.i or s.w or 'ferry', 0, id, 'FORCE', 'JUSTID') end)
  end
end

-- look counts a message as a group sees it, and tells whether the group needs it, and whether it has had it.
local function look(g, id)
  local s = state(g, id)
  if not s and call('HEXISTS', of(g, 'flight'), id) == 1 then
    problem('orphan', g, id, 'in flight, but not pending', function()
      call('XCLAIM', STREAM, g, 'ferry', 0, id, 'FORCE', 'JUSTID')
      s = state(g, id)
    end)
  end
  if s then
    count_of(g, s.s, 1)
    misplaced(g, id, s)
    return s.s ~= 'D', false
  end
  if not unread(g, id) then return false, true end
  count_of(g, 'R', 1)
  return true, false
end

local function look_all(id)
  local needed, had = 0, {}
  checked = checked + 1
  for _, g in ipairs(groups()) do
    local needs, done = look(g, id)
    if needs then needed = needed + 1 end
    if done then had[#had + 1] = g end
  end
  local said, m = left(id), meta(id)
  if needed > 0 then
    count_of('', 'messages', 1)
    count_of('', 'bytes', m and m.bytes or 0)
  end
  if m and not call('HGET', IDS, m.name) then
    problem('index', '', id, 'not found by its id', function() call('HSET', IDS, m.name, id) end)
  end
  if m and needed > 0 and m.exp > now and not call('ZSCORE', EXPIRES, id) then
    problem('orphan', '', id, 'expires at no time', function() timer(EXPIRES, m.exp, id) end)
  end
  if said == needed then return end
  problem('count', '', id, 'groups that need it: ' .. said .. ' counted, ' .. needed .. ' found', function()
    if said > needed and #had > 0 and #had <= said - needed and entry_of(id) then -- they have not settled it, so they get it again
      for _, g in ipairs(had) do redeliver(g, id) end
      needed = needed + #had
    end
    call('HSET', LEFT, id, math.max(needed, 1))
    if needed > 0 then call('ZREM', KEPT, id) else drop(id) end
  end)
end

-- foreign tells whether an entry was taken on from another program; what is not is not ours to look at yet.
local function foreign(id, fields)
  if call('HEXISTS', META, id) == 1 then return true end
  for _, g in ipairs(groups()) do
    if call('XPENDING', STREAM, g, id, id, 1)[1] and not (call('HGET', of(g, 'group'), 'reading') and unread(g, id)) then
      problem('orphan', '', id, 'of another program, and not noted', function() note(id, told_by(id, fields)) end)
      return true
    end
  end
  return false
end

local next_one = ''
if phase == 's' then
  local entries = some(at, last)
  for _, e in ipairs(entries) do
    if e[2][1] == 'v' or foreign(e[1], e[2]) then look_all(e[1]) end
  end
  next_one = #entries == STEP and cursor_of('s', last, seq, entries[STEP][1]) or cursor_of('o', last, seq, '0')
elseif phase == 'o' then -- records of what is not in the stream, by their place in the hash
  local page = call('HSCAN', META, at, 'COUNT', STEP)
  for i = 1, #page[2], 2 do
    local id = page[2][i]
    if id ~= '' and valid(id) and not entry_of(id) then look_all(id) end
  end
  next_one = page[1] ~= '0' and cursor_of('o', last, seq, page[1]) or cursor_of('g', last, seq, '1:0')
else
  local place_in, scan = match(at, '^(%d+):(%d+)$')
  place_in, scan = inspect(tonumber(place_in), scan)
  if place_in then next_one = cursor_of('g', last, seq, place_in .. ':' .. scan) else checked = checked + call('HLEN', LATER) end
end

local counts, counters = {}, {}
for what, n in pairs(found) do
  counts[#counts + 1] = what
  counts[#counts + 1] = int(n)
end
local function tell(g, what, n)
  counters[#counters + 1] = g .. ' ' .. what
  counters[#counters + 1] = int(n)
end
local f = call('HMGET', TOPIC, 'messages', 'bytes', 'published', 'fanned', 'expired', 'cancelled')
for i = 1, 6 do f[i] = tonumber(f[i] or 0) or 0 end
tell('', 'messages', f[1])
tell('', 'bytes', f[2])
tell('', 'before', f[3])
tell('', 'published', f[3] - f[4] - f[5] - f[6] - call('ZCARD', DELAYED) - call('ZCARD', HELD))
for _, g in ipairs(groups()) do
  f = call('HMGET', of(g, 'group'), 'received', 'acked', 'dropped', 'expired', 'cancelled')
  for i = 1, 5 do f[i] = tonumber(f[i] or 0) or 0 end
  local i, w, d = size(of(g, 'flight')), call('ZCARD', of(g, 'wait')), call('ZCARD', of(g, 'dead'))
  tell(g, 'I', i)
  tell(g, 'W', w)
  tell(g, 'D', d)
  tell(g, 'settled', f[2] + f[3] + f[4] + f[5])
  tell(g, 'R', f[1] - f[2] - f[3] - f[4] - f[5] - i - w - d)
end
return {'ok', checked .. '', problems, counts, next_one, counters}
