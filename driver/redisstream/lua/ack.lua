-- ack: ends plain deliveries, handled or dropped.
-- ARGV: 1 partitions, 2 group, 3 "acked" or "dropped", 4 how many, 5 how many tokens; then of each token: itself and how many deliveries
--   it has; then, in their order, the stream ids; the ids of the messages; then the bytes of all; the bytes of each in
--   one text; how long the handler of each took, in ns, in one text; the instance.
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
if keep > 0 then
  call('ZCARD', T .. 'kept')
  call('HLEN', G .. 'done')
end
if offers > 0 then
  for _, name in ipairs({'chain', 'lane0', 'lane1', 'lane2', 'lane3'}) do call('ZCARD', G .. name) end
end
local results, keys, freed, i = {}, {}, {}, 0
local function free(key, id)
  if freed[key] then
    freed[key] = freed[key] .. ' ' .. id
  else
    freed[key], keys[#keys + 1] = id, key
  end
end
local function count_down(token, done)
  if call('HINCRBY', G .. 'claims', '#' .. token, -done) > 0 then return end
  call('HDEL', G .. 'claims', token, '#' .. token)
  call('ZREM', G .. 'lease', token)
end

-- Nearly always nothing but plain messages are to be ended, whose entries go at once: then no lists need to be made.
local simple, seen = keep == 0 and noted < 2 and expiring == 0 and lefts == none, {}
for t = 1, simple and tokens or 0 do
  local till, bare = call('ZSCORE', G .. 'lease', ARGV[4 + 2 * t]), ARGV[4 + 2 * t] .. '/'
  simple = simple and till and tonumber(till) > at
  for _ = 1, simple and tonumber(ARGV[5 + 2 * t]) or 0 do
    i = i + 1
    local v, id = hold[i], ARGV[base + i]
    if not v or v ~= bare and string.find(v, bare, 1, true) ~= 1 or odd[i] or grave[i] or seen[id] then
      simple = false
      break
    end
    seen[id] = true
    if v ~= bare then free(string.sub(v, #bare + 1), id) end
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
  results = {string.rep('k', n)}
end
