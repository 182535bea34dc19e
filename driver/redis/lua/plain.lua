-- plain: publishes messages that are all plain (of normal priority, without key, delay, TTL, dedup id or id of the producer's
--   own) and new, to a topic without bounds: what publish does then, with less to look at.
-- Fragments: slim, guard, answers.
-- KEYS: as below, then for each group its hash and its lane of normal priority.
-- ARGV: 1 shards, 2 epoch, 3 id of the request, 4 how many, then the ids, then the envelopes.
-- Returns {"ok", first sequence number}, or {"slow"} when something is not so, {"slow", "bound"} when that is a bound: then nothing was
--   changed, and publish will tell.
local n = tonumber(ARGV[4])
local before = answered(ARGV[3])
if before then return before end
if (known[12] or '0') ~= '0' or (known[13] or '0') ~= '0' then return {'slow', 'bound'} end
if groups == 0 then return {'slow'} end
for _, taken in ipairs(call('HMGET', IDS, unpack(ARGV, 5, 4 + n))) do
  if taken then return {'slow'} end
end
-- What is written below and has not been read yet must be ours, see types.
call('HLEN', BODIES)
call('HLEN', SIZES)
call('ZCARD', SEGMENTS)
for g = 8, #KEYS, 2 do
  call('HLEN', KEYS[g])
  call('LLEN', KEYS[g + 1])
end
local solo = groups == 1 and (known[6] or '') == ''
if not solo then call('HLEN', LIVE) end

-- Turning a number into text costs as much as a command: here it is done for ten messages at a time, or with text alone.
local clock, digits = call('TIME'), {[0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}
local stamp, seq, size = '@' .. clock[1] .. part('00000' .. clock[2], -6, -4), tonumber(known[7] or 0), 0
local bodies, index, items, tens, lane_tens = {}, {}, {}
for i = 1, n do
  local digit = (seq + i) % 10
  if digit == 0 or i == 1 then
    tens = floor((seq + i) / 10)
    tens = tens > 0 and tens .. '' or ''
    lane_tens = '1' .. tens
  end
  digit = digits[digit]
  local body, item = ARGV[4 + n + i], lane_tens .. digit .. stamp
  bodies[2 * i - 1] = tens .. digit
  bodies[2 * i] = body
  index[2 * i - 1] = ARGV[4 + i]
  index[2 * i] = item
  items[i] = item
  size = size + #body
end

local published = (known[10] or 0) + n .. ''
local fanned = known[11] == known[10] and published or (known[11] or 0) + n
call('HSET', TOPIC, 'seq', bodies[2 * n - 1], 'messages', (known[8] or 0) + n, 'bytes', (known[9] or 0) + size,
  'published', published, 'fanned', fanned)
call('HSET', BODIES, unpack(bodies))
call('HSET', IDS, unpack(index))
local from, to = floor((seq + 1) / 1024), floor((seq + n) / 1024)
for segment = from, to do
  local m = from == to and n or math.min(seq + n, segment * 1024 + 1023) - math.max(seq + 1, segment * 1024) + 1
  if call('HINCRBY', SIZES, segment, m == n and ARGV[4] or m) == m then call('ZADD', SEGMENTS, segment, segment) end
end
if solo then
  if not implied then call('HSET', TOPIC, 'solo', letters) end
else
  local live = {}
  for i = 1, n do
    live[2 * i - 1] = bodies[2 * i - 1]
    live[2 * i] = letters
  end
  call('HSET', LIVE, unpack(live))
end
for g = 8, #KEYS, 2 do
  call('HINCRBY', KEYS[g], 'received', ARGV[4])
  if call('RPUSH', KEYS[g + 1], unpack(items)) == n then call('PUBLISH', TOPIC, call('HGET', KEYS[g], 'name')) end
end
return answer(ARGV[3], {'ok', bodies[1]})
