-- claim: leases messages to the owner of a partition.
-- ARGV: 1 partitions, 2 group, 3 member, 4 epoch of its ownership, 5 token, 6 how many, 7 lease in ms, 8 most of one key,
--   9 instance, 10 how many entries are read ahead, 11 to 14 how far one claim moves each lane (11 is "" for strict priority), 15 tokens of
--   claims whose answers did not come.
-- Returns {"stale"}, {"lost"} for one who is not the owner, or {"ok", now, next due or "", list of {id, attempts, lost leases,
--   cause, published, fields}}.
local g, most, run = ARGV[2], tonumber(ARGV[6]), tonumber(ARGV[8])
local topic = call('HMGET', TOPIC, 'partitions', 'paused')
if topic[1] ~= ARGV[1] or call('HEXISTS', GROUPS, g) == 0 then return {'stale'} end
local owner = call('HMGET', of(g, 'owner'), 'member', 'epoch', 'until')
if owner[1] ~= ARGV[3] or owner[2] ~= ARGV[4] or tonumber(owner[3]) <= now then return {'lost'} end
advance(200)
return_lost(g, ARGV[15])
local group = call('HMGET', of(g, 'group'), 'paused', 'pass', 'pass0', 'pass1', 'pass2', 'pass3')
local picked = {}
local function answer()
  if #picked == 0 then call('HSET', of(g, 'group'), 'hungry', 1) end
  return {'ok', int(now), next_due(g), picked}
end
if topic[2] == '1' or group[1] == '1' then return answer() end

local window = call('ZCARD', of(g, 'chain'))
for lane = 0, 3 do window = window + call('ZCARD', of(g, 'lane' .. lane)) end
if window < tonumber(ARGV[10]) then fetch(g, tonumber(ARGV[10]) - window, ARGV[9]) end

local function pick(id, s)
  take_out(g, id, s)
  s.s, s.o, s.i = 'I', ARGV[5], ARGV[9]
  if s.w ~= ARGV[9] then -- read by an earlier owner: the pending list must name the holder
    call('XCLAIM', STREAM, g, ARGV[9], 0, id, 'JUSTID')
    s.w = ARGV[9]
  end
  save(g, id, s)
  call('ZADD', of(g, 'lease'), now + ARGV[7], id)
  if s.k ~= '' then call('ZADD', of(g, 'flight'), 0, member(s, id)) end
  local m = meta(id)
  picked[#picked + 1] = {id, s.f .. '', s.x .. '', s.c .. '', int(m and m.pub or 0), content(g, id) or {}}
end

-- serve picks the first of a lane, and of its key as many more as a run allows.
local function serve(lane)
  local id = call('ZRANGE', of(g, 'lane' .. lane), 0, 0)[1]
  local s = state(g, id)
  if not s then return call('ZREM', of(g, 'lane' .. lane), id) end
  if s.k == '' then return pick(id, s) end
  for n, next_id in ipairs(first_of(g, 'chain', s.k, math.min(run, most - #picked))) do
    local x = state(g, next_id)
    if x.s ~= 'R' then break end
    pick(next_id, x)
  end
  front(g, s.k)
end

local function open()
  local lanes = {}
  for lane = 3, 0, -1 do
    if call('EXISTS', of(g, 'lane' .. lane)) == 1 then lanes[#lanes + 1] = lane end
  end
  return lanes
end

-- close leaves a lane out that has become empty. No other can have become so, or have got something.
local function close(lanes, at)
  if call('EXISTS', of(g, 'lane' .. lanes[at])) == 0 then table.remove(lanes, at) end
end

if ARGV[11] == '' then
  local lanes = open()
  while #picked < most and #lanes > 0 do
    serve(lanes[1])
    close(lanes, 1)
  end
else
  local clock_now, pass = tonumber(group[2] or 0), {}
  for lane = 0, 3 do pass[lane] = tonumber(group[3 + lane] or 0) end
  local lanes = open()
  local served = #lanes > 0
  for _, lane in ipairs(lanes) do pass[lane] = math.max(pass[lane], clock_now) end
  while #picked < most and #lanes > 0 do
    local at = 1
    for i = 2, #lanes do if pass[lanes[i]] < pass[lanes[at]] then at = i end end
    local best = lanes[at]
    local had = #picked
    serve(best)
    if #picked > had then
      clock_now = pass[best]
      pass[best] = pass[best] + (#picked - had) * tonumber(ARGV[11 + best])
    end
    close(lanes, at)
  end
  if served then
    call('HSET', of(g, 'group'), 'pass', int(clock_now), 'pass0', int(pass[0]), 'pass1', int(pass[1]), 'pass2', int(pass[2]), 'pass3', int(pass[3]))
  end
end
return answer()
