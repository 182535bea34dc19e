-- store: stores messages of any kind, in order.
-- Fragments: head, types, there, spread, state, fan, advance.
-- ARGV: 1 partitions, 2 flags (a all or nothing, f whatever the bounds say), 3 how many; then of each: id, delay in ms, or "@"
--   and a time, or "h" to hold, or "" for now; TTL in ms, dedup id, its window in ms, "1" for an id of the producer's own,
--   bytes, how many fields, the fields.
-- Returns {"stale"}, {"nogroup"}, or {"ok", what became of each}: s and the stream id, l for later, d, the stream id and the id of the first one, m full.
local ID_WINDOW = 60000
if #groups() == 0 then return {'nogroup'} end
advance(100)
local topic = call('HMGET', TOPIC, 'max_messages', 'max_bytes', 'messages', 'bytes')
local forced = string.find(ARGV[2], 'f', 1, true)
local max_messages, max_bytes = tonumber(topic[1] or 0), tonumber(topic[2] or 0)
local messages, bytes = tonumber(topic[3] or 0), tonumber(topic[4] or 0)

local function full(n, size)
  if forced then return false end
  return max_messages > 0 and messages + n > max_messages or max_bytes > 0 and bytes + size > max_bytes
end

local function known(name, dedup)
  local at = call('HGET', IDS, name)
  if at then return name, at end
  if dedup ~= '' then
    local first = call('HGET', DEDUP, dedup)
    if first then return match(first, '^(%S+) (.*)$') end
  end
end

local function remember(dedup, window, name, at)
  call('HSET', DEDUP, dedup, name .. ' ' .. at)
  timer(WINDOWS, now + window, dedup)
end

local all, i = {}, 4
for n = 1, tonumber(ARGV[3]) do
  local x = {name = ARGV[i], delay = ARGV[i + 1], ttl = tonumber(ARGV[i + 2]), dedup = ARGV[i + 3], window = tonumber(ARGV[i + 4]),
    own = ARGV[i + 5] == '1', bytes = tonumber(ARGV[i + 6]), fields = {}}
  local size = tonumber(ARGV[i + 7])
  for j = 1, size do x.fields[j] = ARGV[i + 7 + j] end
  i = i + 8 + size
  if x.dedup ~= '' then x.dedup = 'd' .. x.dedup end
  all[n] = x
end
if string.find(ARGV[2], 'a', 1, true) then
  local total = 0
  for _, x in ipairs(all) do total = total + x.bytes end
  if full(#all, total) then
    local out = {}
    for n = 1, #all do out[n] = 'm' end
    return {'ok', out}
  end
end

local function store(x)
  local first, at = known(x.name, x.dedup)
  if not first and x.own then first, at = known(x.name, 'o' .. x.name) end
  if first then return 'd' .. at .. ' ' .. first end
  if full(1, x.bytes) then return 'm' end
  messages, bytes = messages + 1, bytes + x.bytes
  count('published', 1)
  count('messages', 1)
  count('bytes', x.bytes)
  local exp, at, when = x.ttl > 0 and soon + x.ttl or 0, nil, nil
  if x.delay == 'h' then when = 'h'
  elseif string.sub(x.delay, 1, 1) == '@' then when = tonumber(string.sub(x.delay, 2))
  elseif x.delay ~= '' then when = soon + x.delay end
  if when == 'h' or when and when > now then
    postpone(x.name, {fields = x.fields, pub = now, bytes = x.bytes, exp = exp}, when)
    at = 'later'
  else
    at = fan(x.name, x.fields, now, x.bytes, exp)
  end
  if x.dedup ~= '' then remember(x.dedup, x.window, x.name, at) end
  if x.own then remember('o' .. x.name, ID_WINDOW, x.name, at) end
  return (at == 'later' and 'l' or 's') .. at
end
local out = {}
gather()
for n, x in ipairs(all) do out[n] = store(x) end
spend()
return {'ok', out}
