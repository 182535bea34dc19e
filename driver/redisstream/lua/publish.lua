-- publish: adds plain messages to the stream: due now, with no TTL or dedup, and ids that Ferry made.
-- ARGV: 1 partitions, 2 flags (f whatever the bounds say), 3 how many, 4 bytes of all, 5 which is the last with a priority, or 0, 6 how many
--   shapes there are; then of each shape how many fields behind version and id, and their names; then of each message its shape, if there are
--   several, its id, and the values of its fields. Names that all have are sent once: every argument costs as much as a field.
-- Returns {"stale"}, {"nogroup"}, {"slow"} if lua/store.lua is needed, or {"plain", their stream ids}.
local call = redis.call
local T = string.sub(KEYS[1], 1, -6)
local n = tonumber(ARGV[3])
local topic = call('HMGET', KEYS[1], 'partitions', 'next', 'max_messages', 'max_bytes', 'messages', 'bytes', 'published', 'fanned')
if topic[1] ~= ARGV[1] then return {'stale'} end
local groups = call('HKEYS', T .. 'groups')
if #groups == 0 then return {'nogroup'} end
local clock = call('TIME')
local messages, bytes = tonumber(topic[5] or 0) + n, tonumber(topic[6] or 0) + ARGV[4]
local function over(bound, value) return bound and bound ~= '0' and value > tonumber(bound) and ARGV[2] ~= 'f' end
if topic[2] and (tonumber(topic[2]) or 0) <= clock[1] * 1000 + math.floor(clock[2] / 1000) or over(topic[3], messages) or over(topic[4], bytes) then
  return {'slow'}
end
local shapes, at, several = {}, 7, tonumber(ARGV[6]) > 1
for i = 1, tonumber(ARGV[6]) do
  local shape = {T .. 'stream', '*', 'v', '1', 'id', ''}
  for j = 1, tonumber(ARGV[at]) do shape[5 + 2 * j], shape[6 + 2 * j] = ARGV[at + j], '' end
  shapes[i], at = shape, at + 1 + tonumber(ARGV[at])
end
local first, names, seen = at, {}, {}
for i = 1, n do
  local shape = shapes[1]
  if several then
    shape = shapes[tonumber(ARGV[at])]
    at = at + 1
  end
  local name = ARGV[at]
  if seen[name] then return {'slow'} end
  names[i], seen[name], at = name, true, at + #shape / 2 - 2
end
local known = call('HMGET', T .. 'ids', unpack(names))
for i = 1, n do
  if known[i] then return {'slow'} end
end

if #groups > 1 then call('HLEN', T .. 'left') end -- what is written must be ours; the rest was read
local added, index = {}, {}
at = first
for i = 1, n do
  local shape = shapes[1]
  if several then
    shape = shapes[tonumber(ARGV[at])]
    at = at + 1
  end
  for j = 6, #shape, 2 do
    shape[j] = ARGV[at]
    at = at + 1
  end
  local id = call('XADD', unpack(shape))
  added[i], index[2 * i - 1], index[2 * i] = id, names[i], id
end
call('HSET', T .. 'ids', unpack(index))
if #groups > 1 then
  for i = 1, n do index[2 * i - 1], index[2 * i] = added[i], #groups end
  call('HSET', T .. 'left', unpack(index))
end
local function int(x) return string.format('%.0f', x) end
call('HSET', KEYS[1], 'messages', int(messages), 'bytes', int(bytes), 'published', int((topic[7] or 0) + n), 'fanned', int((topic[8] or 0) + n), 'last', added[n])
if ARGV[5] ~= '0' then call('HSET', KEYS[1], 'prio', added[tonumber(ARGV[5])]) end
for _, g in ipairs(groups) do
  local key = T .. 'g:' .. g .. ':group'
  call('HINCRBY', key, 'received', n)
  if call('HDEL', key, 'hungry') == 1 then call('PUBLISH', KEYS[1], g) end
end
return {'plain', added}
