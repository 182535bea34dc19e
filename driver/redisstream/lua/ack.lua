-- ack: ends plain deliveries, handled or dropped.
-- ARGV: 1 partitions, 2 group, 3 "acked" or "dropped", 4 how many, 5 how many tokens; then of each token: itself and how many deliveries
--   it has; then, in their order, the stream ids; the ids of the messages; then the bytes of all; the bytes of each in one text.
-- Returns {"stale"} or {"ok", of each k done, l not held, s not plain: to be settled otherwise}.
local call = redis.call
local T = string.sub(KEYS[1], 1, -6)
local G = T .. 'g:' .. ARGV[2] .. ':'
local n, tokens = tonumber(ARGV[4]), tonumber(ARGV[5])
local topic = call('HMGET', KEYS[1], 'partitions', 'keep', 'messages', 'bytes')
if topic[1] ~= ARGV[1] or call('HEXISTS', T .. 'groups', ARGV[2]) == 0 then return {'stale'} end
local clock = call('TIME')
local at = clock[1] * 1000 + math.floor(clock[2] / 1000)
local base = 5 + 2 * tokens
local function of_all(key) return call('HMGET', key, unpack(ARGV, base + 1, base + n)) end
local hold, none = of_all(G .. 'flight'), {}
local odd = call('EXISTS', G .. 'state') == 1 and of_all(G .. 'state') or none
local grave = call('EXISTS', T .. 'graves') == 1 and of_all(T .. 'graves') or none
local lefts = call('HLEN', T .. 'left') > 1 and of_all(T .. 'left') or none

-- What is written below must be ours: it is read before.
local noted, expiring, offers = call('HLEN', T .. 'meta'), call('ZCARD', T .. 'expires'), call('HLEN', G .. 'offer')
call('HLEN', T .. 'ids')
call('HLEN', G .. 'busy')
call('HLEN', G .. 'claims')
local keep = tonumber(topic[2] or 0)
local results, seen, spoilt = {}, {}, nil
local i = 0
local function count_down(token, done)
  if call('HINCRBY', G .. 'claims', '#' .. token, -done) > 0 then return end
  call('HDEL', G .. 'claims', token, '#' .. token)
  call('ZREM', G .. 'lease', token)
end

-- Nearly always nothing but plain messages without keys are to be ended, whose entries go at once: then no lists need to be made.
local simple = keep == 0 and noted < 2 and expiring == 0 and lefts == none
for t = 1, simple and tokens or 0 do
  local till, bare = call('ZSCORE', G .. 'lease', ARGV[4 + 2 * t]), ARGV[4 + 2 * t] .. '/'
  simple = simple and till and tonumber(till) > at
  for _ = 1, simple and tonumber(ARGV[5 + 2 * t]) or 0 do
    i = i + 1
    local id = ARGV[base + i]
    if hold[i] ~= bare or odd[i] or grave[i] or seen[id] then
      simple = false
      break
    end
    seen[id] = true
  end
end
if simple then
  for t = 1, tokens do count_down(ARGV[4 + 2 * t], tonumber(ARGV[5 + 2 * t])) end
  call('HDEL', G .. 'flight', unpack(ARGV, base + 1, base + n))
  call('XACK', T .. 'stream', ARGV[2], unpack(ARGV, base + 1, base + n))
  call('HINCRBY', G .. 'group', ARGV[3], n)
  call('HSET', KEYS[1], 'messages', string.format('%.0f', topic[3] - n), 'bytes', string.format('%.0f', topic[4] - ARGV[base + 2 * n + 1]))
  call('XDEL', T .. 'stream', unpack(ARGV, base + 1, base + n))
  call('HDEL', T .. 'ids', unpack(ARGV, base + n + 1, base + 2 * n))
  return {'ok', string.rep('k', n)}
end

i, seen = 0, {}
for t = 1, tokens do
  local token = ARGV[4 + 2 * t]
  local bare = token .. '/'
  local till = call('ZSCORE', G .. 'lease', token)
  local valid = till and tonumber(till) > at
  for _ = 1, tonumber(ARGV[5 + 2 * t]) do
    i = i + 1
    local v, id = hold[i], ARGV[base + i]
    if not v or v ~= bare and string.sub(v, 1, #token) ~= token or seen[id] then
      results[i] = 'l'
    elseif v ~= bare and string.sub(v, 1, #bare) ~= bare or odd[i] or grave[i] then
      results[i] = 's'
    elseif not valid then
      results[i] = 'l'
    else
      results[i], seen[id] = 'k', true
    end
    if results[i] ~= 'k' and v and not seen[id] then
      spoilt = spoilt or {}
      spoilt[string.match(v, '/(.*)$')] = true
    end
  end
end
if spoilt then -- none of a key may end here before another of it that does not
  for x = 1, n do
    local key = results[x] == 'k' and hold[x] and string.match(hold[x], '/(.*)$') or ''
    if key ~= '' and spoilt[key] then results[x] = 's' end
  end
end

-- So must what only these need.
if keep > 0 then call('ZCARD', T .. 'kept') end
if offers > 0 then
  for _, name in ipairs({'chain', 'lane0', 'lane1', 'lane2', 'lane3'}) do call('ZCARD', G .. name) end
end
local others = lefts ~= none and call('HKEYS', T .. 'groups') or none
for _, other in ipairs(others) do call('SCARD', T .. 'g:' .. other .. ':skip') end

local ended, gone, fewer, names, freed, counted = {}, {}, {}, {}, {}, {}
i = 0
for t = 1, tokens do
  local token, done = ARGV[4 + 2 * t], 0
  for _ = 1, tonumber(ARGV[5 + 2 * t]) do
    i = i + 1
    if results[i] == 'k' then
      local id, key = ARGV[base + i], string.sub(hold[i], #token + 2)
      done = done + 1
      ended[#ended + 1] = id
      local need = lefts[i] and tonumber(lefts[i]) or 1
      if need > 1 then
        fewer[#fewer + 1] = id
        fewer[#fewer + 1] = need - 1
      else
        gone[#gone + 1] = id
        names[#names + 1] = ARGV[base + n + i]
        counted[i] = true
      end
      if key ~= '' then
        freed[key] = freed[key] or {}
        freed[key][id] = true
      end
    end
  end
  if done > 0 then count_down(token, done) end
end
if #ended == 0 then return {'ok', table.concat(results)} end

call('HDEL', G .. 'flight', unpack(ended))
call('XACK', T .. 'stream', ARGV[2], unpack(ended))
call('HINCRBY', G .. 'group', ARGV[3], #ended)
if #fewer > 0 then call('HSET', T .. 'left', unpack(fewer)) end
if #gone > 0 then
  local bytes = tonumber(ARGV[base + 2 * n + 1])
  if #gone < n then
    local x = 0
    bytes = 0
    for size in string.gmatch(ARGV[base + 2 * n + 2], '%d+') do
      x = x + 1
      if counted[x] then bytes = bytes + size end
    end
  end
  call('HSET', KEYS[1], 'messages', string.format('%.0f', topic[3] - #gone), 'bytes', string.format('%.0f', topic[4] - bytes))
  if lefts ~= none then call('HDEL', T .. 'left', unpack(gone)) end
  if expiring > 0 then call('ZREM', T .. 'expires', unpack(gone)) end
  if keep > 0 then
    local kept = {}
    for x, id in ipairs(gone) do kept[2 * x - 1], kept[2 * x] = at + keep, id end
    call('ZADD', T .. 'kept', unpack(kept))
    local due = call('HGET', KEYS[1], 'next')
    if not due or at + keep < tonumber(due) then call('HSET', KEYS[1], 'next', string.format('%.0f', at + keep)) end
  else
    call('XDEL', T .. 'stream', unpack(gone))
    local ours = names
    if noted > 1 then -- an entry of another program may have the id of one of ours
      local index = call('HMGET', T .. 'ids', unpack(names))
      ours = {}
      for x, id in ipairs(gone) do
        if index[x] == id then ours[#ours + 1] = names[x] end
      end
      call('HDEL', T .. 'meta', unpack(gone))
    end
    if #ours > 0 then call('HDEL', T .. 'ids', unpack(ours)) end
    for _, other in ipairs(others) do call('SREM', T .. 'g:' .. other .. ':skip', unpack(gone)) end
  end
end

local keys = {}
for key in pairs(freed) do keys[#keys + 1] = key end
if #keys == 0 then return {'ok', table.concat(results)} end
local busy, idle, still = call('HMGET', G .. 'busy', unpack(keys)), {}, {}
for x, key in ipairs(keys) do
  local rest = {}
  for id in string.gmatch(busy[x] or '', '%S+') do
    if not freed[key][id] then rest[#rest + 1] = id end
  end
  if #rest == 0 then
    idle[#idle + 1] = key
  else
    still[#still + 1] = key
    still[#still + 1] = table.concat(rest, ' ')
  end
end
if #idle > 0 then call('HDEL', G .. 'busy', unpack(idle)) end
if #still > 0 then call('HSET', G .. 'busy', unpack(still)) end
local behind = {}
if #idle > 0 and offers > 0 then
  local offered = call('HMGET', G .. 'offer', unpack(idle))
  for x, key in ipairs(idle) do
    if offered[x] then behind[#behind + 1] = key end
  end
end
if #behind == 0 then return {'ok', table.concat(results)} end
