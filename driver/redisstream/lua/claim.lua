-- claim: leases messages to the owner of a partition.
-- Fragments: slim, owned, gate, types, lease, quick, head, spread, state, fan, advance, read, lost.
-- ARGV: 1 partitions, 2 group, 3 member, 4 epoch of its ownership, 5 token, 6 how many, 7 lease in ms, 8 most of one key,
--   9 instance, 10 how many entries are read ahead, 11 to 14 how far one claim moves each lane (11 is "" for strict priority), 15 tokens of
--   claims whose answers did not come, 16 how many are read here, 17 "1" if the owner reads more itself.
-- Returns {"stale"}, {"lost"} for one who is not the owner, or {"ok", now, next due or "", "1" if the owner may read the rest itself or
--   "2" if there may be more, list of {id, attempts, lost leases, cause, published, fields}, entries that are plain, what META has of those, "1" if their
--   claim is noted whole}.
local ROUNDS, ENOUGH = 16, 1048576 -- rounds in which something is read whose key is free, and bytes; then somebody else's turn is due
local g, run, picked, bytes = ARGV[2], tonumber(ARGV[8]), {}, 0
if blocked then -- what the gate has read, it has looked at
  ahead(g, blocked)
  call('HSET', of(g, 'group'), 'last', entries[#entries][1])
  -- Others may be behind them. They are read at once if there is nothing else to deliver, and if all that this may write is ours.
  if #taken > 0 or #entries < asked or not pcall(ours_for, g) then
    return {'ok', int(now), topic[3] or '', #entries < asked and '' or '2', picked, taken, told}
  end
elseif entries then
  ahead(g, entries)
else
  ours_for(g)
end
advance(100)
return_lost(g, ARGV[15])
if group[3] then recover(g) end

local flight, ids = {}, {}
local function answer(go) -- "1", "2" or ""
  if #ids > 0 then
    call('HSET', of(g, 'flight'), unpack(flight))
    call('HSET', of(g, 'claims'), ARGV[5], table.concat(ids, ' '), '#' .. ARGV[5], #ids)
    timer(of(g, 'lease'), now + ARGV[7], ARGV[5])
  end
  if go == '1' then
    call('HSET', of(g, 'group'), 'reading', 1)
  elseif go == '' then
    call('HSET', of(g, 'group'), 'hungry', 1)
  end
  return {'ok', int(now), call('HGET', TOPIC, 'next') or '', go, picked, {}, {}}
end
if paused then return answer('') end
if has(EXPIRES) and #past(EXPIRES, 1) > 0 then return answer('2') end -- so many expired at once that the rest must go first

-- Entries behind "since" were read by this instance.
local reader = call('HMGET', of(g, 'group'), 'reader', 'since')
local since = reader[1] == ARGV[9] and reader[2] or nil

-- contents returns the fields of messages: in one call where they follow each other in the stream.
local function contents(list)
  local run = {}
  if #list > 1 and not has(of(g, 'edited')) then
    run = call('XRANGE', STREAM, list[1], list[#list], 'COUNT', #list)
  end
  local all = {}
  for i, id in ipairs(list) do
    if run[i] and run[i][1] == id then all[i] = run[i][2] else all[i] = content(g, id) or {} end
  end
  return all
end

-- pick delivers messages that have left their queue, with the states of those to which something has happened. The pending list must name the holder
-- of what is delivered again, or was read by another owner. The rest is in the order of the stream.
local function pick(list, key, states, known, fields)
  local foreign, ours = {}, false -- what another owner has read, and whether what follows was read by this one
  for i, id in ipairs(list) do
    local s = states[i]
    if s then
      s.s, s.i, s.w, s.b = 'I', ARGV[9], ARGV[9], nil
      save(g, id, s)
      call('XCLAIM', STREAM, g, ARGV[9], 0, id, 'RETRYCOUNT', s.f + s.x + 1, 'JUSTID')
    elseif not ours then
      ours = since and before(since, id)
      if not ours then foreign[#foreign + 1] = id end
    end
    local n = #ids + 1
    ids[n], flight[2 * n - 1], flight[2 * n] = id, id, ARGV[5] .. '/' .. key
    local published, cause
    if known[i] then published, cause = match(known[i], '^(%d+) %d+ %d+ (%d+)@?%d* ') end
    picked[n] = {id, s and s.f .. '' or '0', s and s.x .. '' or '0', s and s.c .. '' or cause or '', published or '', fields[i]}
  end
  if #foreign == 0 then return end
  for _, x in ipairs({'RETRYCOUNT', 1, 'JUSTID'}) do foreign[#foreign + 1] = x end
  call('XCLAIM', STREAM, g, ARGV[9], 0, unpack(foreign))
end

-- serve picks the first of a lane, and of its key as many more as a run allows.
local looked = false
local function serve(lane)
  local first = call('ZRANGE', of(g, 'lane' .. lane), 0, 0)[1]
  local s = state(g, id_in(first))
  if not s or s.s ~= 'R' then return call('ZREM', of(g, 'lane' .. lane), first) end
  if s.k == '' then
    call('ZREM', of(g, 'lane' .. lane), first)
    local id = id_in(first)
    local kept = call('HGET', of(g, 'state'), id)
    return pick({id}, '', {kept and record_of(kept)}, {call('HGET', META, id)}, {content(g, id) or {}})
  end
  local key, want = s.k, math.min(run, most - #ids)
  local list = first_of(g, key, want)
  if #list < want and not looked then -- the rest of the run may not be read yet
    looked = true
    fetch(g, small, ARGV[9])
    list = first_of(g, key, want)
  end
  if #list == 0 then -- another program has taken it out of its key
    call('ZADD', of(g, 'chain'), 0, range_of(key) .. first)
    list = {first}
  end
  local names_of, going, left_chain = {}, {}, {}
  for i, x in ipairs(list) do names_of[i] = id_in(x) end
  local states, known = call('HMGET', of(g, 'state'), unpack(names_of)), call('HMGET', META, unpack(names_of))
  for i, id in ipairs(names_of) do
    states[i] = states[i] and record_of(states[i])
    if states[i] and states[i].s ~= 'R' then break end
    going[i], left_chain[i] = id, range_of(key) .. list[i]
  end
  if #going == 0 then -- not even the first of the key is ready, so that none may be offered
    call('ZREM', of(g, 'lane' .. lane), first)
    return front(g, key)
  end
  pick(going, key, states, known, contents(going))
  call('ZREM', of(g, 'chain'), unpack(left_chain))
  call('HSET', of(g, 'busy'), key, table.concat(going, ' '))
  front(g, key)
end

-- Priorities reach as far as entries are read ahead; that is done only where there are any.
local last = call('HGET', of(g, 'group'), 'last')
local prio = call('HGET', TOPIC, 'prio')
if prio then
  local passed = true
  for _, other in ipairs(groups()) do passed = passed and not before(read_so_far(other), prio) end
  if passed then call('HDEL', TOPIC, 'prio') end
end
if not (prio and before(last, prio)) and call('EXISTS', of(g, 'lane0'), of(g, 'lane2'), of(g, 'lane3')) == 0 then
  for round = blocked and 2 or 1, ROUNDS do
    while #ids < most and call('EXISTS', of(g, 'lane1')) == 1 do serve(1) end
    local room = most - #ids
    if room == 0 then return answer('2') end
    if deep and room > small and not has(of(g, 'skip')) then return answer('1') end
    if #ids >= small or bytes > ENOUGH then return answer('2') end
    local step = round > 1 and #ids == 0 and small or math.min(room, small) -- more where what was read is put aside
    local n, size = fetch(g, step, ARGV[9])
    if n == 0 then return answer('') end
    bytes = bytes + size
    if call('EXISTS', of(g, 'lane0'), of(g, 'lane2'), of(g, 'lane3')) > 0 then break end
  end
  if call('EXISTS', of(g, 'lane0'), of(g, 'lane2'), of(g, 'lane3')) == 0 then return answer('2') end
end

local window, offered = call('ZCARD', of(g, 'chain')), 0
for lane = 0, 3 do offered = offered + call('ZCARD', of(g, 'lane' .. lane)) end
local room = tonumber(ARGV[10]) - window - offered
if room < 1 and offered == 0 then room = ROUNDS * small end -- it is full of followers of keys that are held: others are behind them
local some = room > 0 and fetch(g, room, ARGV[9]) or 0

local lanes, clock_now, pass = {}, tonumber(group[4] or 0), {}
for lane = 3, 0, -1 do
  pass[lane] = tonumber(group[5 + lane] or 0)
  if call('EXISTS', of(g, 'lane' .. lane)) == 1 then
    lanes[#lanes + 1] = lane
    pass[lane] = math.max(pass[lane], clock_now)
  end
end
local by_weight = ARGV[11] ~= '' and #lanes > 0
while #ids < most and #lanes > 0 do
  local best = 1
  for i = 2, by_weight and #lanes or 1 do if pass[lanes[i]] < pass[lanes[best]] then best = i end end
  local lane, had = lanes[best], #ids
  serve(lane)
  if by_weight and #ids > had then
    clock_now = pass[lane]
    pass[lane] = pass[lane] + (#ids - had) * tonumber(ARGV[11 + lane])
  end
  -- One that has become empty is left out. No other can have become so, or have got something.
  if call('EXISTS', of(g, 'lane' .. lane)) == 0 then table.remove(lanes, best) end
end
if by_weight then
  call('HSET', of(g, 'group'), 'pass', int(clock_now), 'pass0', int(pass[0]), 'pass1', int(pass[1]), 'pass2', int(pass[2]), 'pass3', int(pass[3]))
end
return answer(#ids < most and some < room and '' or '2')
