-- audit: looks at some messages of a partition, and with "1" repairs what is wrong with them.
-- ARGV: 1 partitions, 2 "1" to repair, 3 cursor.
-- Returns {"stale"} or {"ok", how many were looked at, list of {kind, group, id, text, "1" if repaired}, counts found, cursor or "",
--   counters of the topic and its groups}.
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
advance(1000)
local fix, problems, checked = ARGV[2] == '1', {}, 0
local phase, last, seq, at = sweep(ARGV[3])
local found = {}
local function count_of(g, what, n) found[g .. ' ' .. what] = (found[g .. ' ' .. what] or 0) + n end
local function problem(kind, g, id, text, mend)
  if fix and mend then mend() end
  problems[#problems + 1] = {kind, g, id, text, fix and mend and '1' or ''}
end
local function missing(g, id, s)
  local function again() line(g, id, s) end
  if s.s == 'W' and not call('ZSCORE', of(g, 'wait'), id) then
    problem('orphan', g, id, 'waits without a time', function() wait(g, id, s, s.t or now, s.tail) end)
  elseif s.s == 'D' and not call('ZSCORE', of(g, 'dead'), id) then
    problem('orphan', g, id, 'dead, but not among the dead letters', function() call('ZADD', of(g, 'dead'), call('HINCRBY', of(g, 'group'), 'graves', 1), id) end)
  elseif s.s == 'R' and s.k == '' and not call('ZSCORE', of(g, 'lane' .. s.l), seat(s, id)) then
    problem('orphan', g, id, 'ready in no lane', again)
  elseif s.s == 'R' and s.k ~= '' and not call('ZSCORE', of(g, 'chain'), member(s, id)) then
    problem('orphan', g, id, 'ready, but not in its key', again)
  elseif s.s == 'I' and (not s.o or not call('ZSCORE', of(g, 'lease'), s.alone and '*' .. id or s.o)) then
    problem('orphan', g, id, 'in flight without a lease', function()
      take_out(g, id, s)
      s.x, s.c = s.x + 1, LOST
      come_back(g, id, s)
    end)
  end
end

-- look counts a message as a group sees it, and tells whether the group needs it.
local function look(g, id)
  local s = state(g, id)
  if s then
    count_of(g, s.s, 1)
    missing(g, id, s)
    return s.s ~= 'D'
  end
  if not unread(g, id) then return false end
  count_of(g, 'R', 1)
  return true
end

local function look_all(id)
  local needed = 0
  checked = checked + 1
  for _, g in ipairs(groups()) do
    if look(g, id) then needed = needed + 1 end
  end
  local said = left(id)
  if needed > 0 then count_of('', 'messages', 1) end
  if said ~= needed then
    problem('count', '', id, 'groups that need it: ' .. said .. ' counted, ' .. needed .. ' found', function()
      if needed > 0 then call('HSET', LEFT, id, needed) else drop(id) end
    end)
  end
end

local next_one = ''
if phase == 's' then
  local entries = some(at, last)
  for _, e in ipairs(entries) do
    if e[2][1] == 'v' or call('HEXISTS', META, e[1]) == 1 then look_all(e[1]) end
  end
  next_one = #entries == STEP and cursor_of('s', last, seq, entries[STEP][1]) or cursor_of('o', last, seq, '0')
elseif phase == 'o' then -- records of what is not in the stream, by their place in the hash
  local page = call('HSCAN', META, at, 'COUNT', STEP)
  for i = 1, #page[2], 2 do
    local id = page[2][i]
    if id ~= '' and not entry_of(id) then look_all(id) end
  end
  next_one = page[1] ~= '0' and cursor_of('o', last, seq, page[1]) or ''
  if next_one == '' then checked = checked + call('HLEN', LATER) end
end
local counts, counters = {}, {}
for what, n in pairs(found) do
  counts[#counts + 1] = what
  counts[#counts + 1] = n .. ''
end
local function tell(g, what, n)
  counters[#counters + 1] = g .. ' ' .. what
  counters[#counters + 1] = int(n)
end
tell('', 'messages', tonumber(call('HGET', TOPIC, 'messages') or 0) - call('HLEN', LATER))
tell('', 'published', tonumber(call('HGET', TOPIC, 'published') or 0))
for _, g in ipairs(groups()) do
  local f = call('HMGET', of(g, 'group'), 'received', 'acked', 'dropped', 'expired', 'cancelled')
  for i = 1, 5 do f[i] = tonumber(f[i] or 0) end
  local i, w, d = size(of(g, 'flight')), call('ZCARD', of(g, 'wait')), call('ZCARD', of(g, 'dead'))
  tell(g, 'I', i)
  tell(g, 'W', w)
  tell(g, 'D', d)
  tell(g, 'R', f[1] - f[2] - f[3] - f[4] - f[5] - i - w - d)
end
return {'ok', checked .. '', problems, counts, next_one, counters}
