-- apply: makes writes, one after the other.
-- ARGV: 1 most values, 2 most requests, 3 for how many ms a request is remembered; then for each write: name, "d" to delete it, its condition
--   ("" none, "a" absent, or a revision), TTL in ms or "", name and epoch of its fence or "", request or "", "1" if it is quiet, data.
-- Returns now, and for each write {"ok", "conflict", "lost" or "full", revision, epoch, written, ends, data}.
local WIDTH = 9

local function forget(name)
  call('HDEL', VALUES, name)
  call('ZREM', NAMES, name)
  call('ZREM', ENDS, name)
  call('ZREM', REVISIONS, name)
end

-- sweep forgets some of what has expired.
local function sweep(most)
  for _, name in ipairs(call('ZRANGEBYSCORE', ENDS, '-inf', now, 'LIMIT', 0, most)) do
    if get(name) then call('ZREM', ENDS, name) else forget(name) end
  end
  for _, request in ipairs(call('ZRANGEBYSCORE', ASKED, '-inf', now, 'LIMIT', 0, most)) do
    call('HDEL', REQUESTS, request)
    call('ZREM', ASKED, request)
  end
end

-- answered returns what a request was answered, or nil.
local function answered(request)
  local v = request ~= '' and call('HGET', REQUESTS, request)
  local until_, revision, epoch, written = match(v or '', '^(%d+) (%d+) (%d+) (%d+)$')
  if not until_ or tonumber(until_) <= now then return nil end
  return {'ok', revision, epoch, written, '0', ''}
end

local function refusal(w, there)
  if w.fence ~= '' then
    local lease = get(w.fence)
    if not lease or lease[2] ~= w.epoch then return 'lost' end
  end
  if w.condition == 'a' and there or w.condition ~= '' and w.condition ~= 'a' and (not there or there[1] ~= w.condition) then return 'conflict' end
  if not there and not w.delete and call('HLEN', VALUES) >= tonumber(ARGV[1]) then
    sweep(1000)
    if call('HEXISTS', VALUES, w.name) == 0 and call('HLEN', VALUES) >= tonumber(ARGV[1]) then return 'full' end
  end
  if w.request ~= '' and call('HLEN', REQUESTS) >= tonumber(ARGV[2]) then
    sweep(1000)
    if call('HLEN', REQUESTS) >= tonumber(ARGV[2]) then return 'full' end
  end
end

local REMEMBERED = 1024
local revision = tonumber(call('HGET', META, 'revision') or 0) or 0
local written = {}

local function put(w, there)
  local ends = w.ttl == '' and 0 or now + 1 + w.ttl -- a part of now's millisecond has passed: nothing may be early
  local epoch = there and there[2] or int(revision)
  call('HSET', VALUES, w.name, table.concat({int(revision), epoch, int(micros), int(ends), w.data}, ' '))
  call('ZADD', NAMES, 0, w.name)
  call('ZADD', REVISIONS, int(revision), w.name)
  call('ZREM', GONE, w.name)
  if ends > 0 then call('ZADD', ENDS, int(ends), w.name) else call('ZREM', ENDS, w.name) end
  return {'ok', int(revision), epoch, int(micros), int(ends), ''}
end

local function remove(w)
  forget(w.name)
  call('ZADD', GONE, int(revision), w.name)
  local much = call('ZCARD', GONE) - REMEMBERED
  if much > 0 then
    local oldest = call('ZRANGE', GONE, 0, math.min(much, 100) - 1, 'WITHSCORES')
    for i = 1, #oldest, 2 do call('ZREM', GONE, oldest[i]) end
    call('HSET', META, 'forgotten', int(oldest[#oldest]))
  end
  return {'ok', '0', '0', '0', '0', ''}
end

local function apply(w)
  local known = answered(w.request)
  if known then return known end
  local there = get(w.name)
  local no = refusal(w, there)
  if no then return there and {no, unpack(there)} or {no, '0', '0', '0', '0', ''} end
  if w.delete and not there then return {'ok', '0', '0', '0', '0', ''} end
  revision = math.max(revision + 1, micros)
  call('HSET', META, 'revision', int(revision))
  local result = w.delete and remove(w) or put(w, there)
  if w.request ~= '' then
    local till = int(now + ARGV[3])
    call('HSET', REQUESTS, w.request, table.concat({till, result[2], result[3], result[4]}, ' '))
    call('ZADD', ASKED, till, w.request)
  end
  if not w.quiet then written[#written + 1] = w.name end
  return result
end

sweep(32)
local results = {int(now)}
for i = 4, #ARGV, WIDTH do
  results[#results + 1] = apply({name = ARGV[i], delete = ARGV[i + 1] == 'd', condition = ARGV[i + 2], ttl = ARGV[i + 3], fence = ARGV[i + 4],
    epoch = ARGV[i + 5], request = ARGV[i + 6], quiet = ARGV[i + 7] == '1', data = ARGV[i + 8]})
end
for _, name in ipairs(written) do call('PUBLISH', META, name) end
return results
