-- apply: makes writes of one bucket or several, one after the other.
-- KEYS: those of each bucket. ARGV: 1 most values, 2 most requests, 3 for how many ms a request is remembered; then for each bucket how many writes it
--   has, and for each of them: name, "d" to delete it, its condition ("" none, "a" absent, or a revision), TTL in ms or "", name and epoch of its
--   fence or "", request or "", "1" if it is quiet, data.
-- Returns now, and for each bucket a list of {"ok", "conflict", "lost" or "full", revision, epoch, written, ends, data} of each write; or "" if a key
--   of it is not ours, and nothing of it was done.
local MOST_VALUES, MOST_REQUESTS = tonumber(ARGV[1]), tonumber(ARGV[2])
local REMEMBERED = 1024
local b -- the bucket that is written

local function enter(bucket)
  b = bucket
  META, VALUES, NAMES, ENDS, REVISIONS, GONE, REQUESTS, ASKED = unpack(KEYS, b.keys, b.keys + 7)
end

-- look reads every key that may be written, so that nothing is written if one is not ours: a script cannot take back what it has written. What the
-- reads say saves others: most buckets have no deletions, and most writes no request.
local function look(bucket)
  enter(bucket)
  b.revision = tonumber(call('HGET', META, 'revision') or 0) or 0
  b.before = b.revision
  b.values, b.gone = call('HLEN', VALUES), call('ZCARD', GONE)
  call('ZCARD', NAMES)
  call('ZCARD', REVISIONS)
  b.expired = call('ZRANGEBYSCORE', ENDS, '-inf', millis, 'LIMIT', 0, 32)
  if not b.asking then return end
  b.requests = call('HLEN', REQUESTS)
  b.outdated = call('ZRANGEBYSCORE', ASKED, '-inf', millis, 'LIMIT', 0, 32)
end

local function forget(name)
  b.values = b.values - call('HDEL', VALUES, name)
  call('ZREM', NAMES, name)
  call('ZREM', ENDS, name)
  call('ZREM', REVISIONS, name)
end

-- sweep forgets what has expired, and answers that nobody may ask for any more.
local function sweep(expired, outdated)
  for _, name in ipairs(expired) do
    if get(name) then call('ZREM', ENDS, name) else forget(name) end
  end
  for _, request in ipairs(outdated or {}) do
    b.requests = b.requests - call('HDEL', REQUESTS, request)
    call('ZREM', ASKED, request)
  end
end

-- relieve makes room in a bucket that is full.
local function relieve()
  sweep(call('ZRANGEBYSCORE', ENDS, '-inf', millis, 'LIMIT', 0, 1000),
    b.asking and call('ZRANGEBYSCORE', ASKED, '-inf', millis, 'LIMIT', 0, 1000))
end

-- answered returns what a request was answered, or nil.
local function answered(request)
  local v = call('HGET', REQUESTS, request)
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
  if not there and not w.delete and b.values >= MOST_VALUES then
    relieve()
    if b.values >= MOST_VALUES and call('HEXISTS', VALUES, w.name) == 0 then return 'full' end
  end
  if w.request ~= '' and b.requests >= MOST_REQUESTS then
    relieve()
    if b.requests >= MOST_REQUESTS then return 'full' end
  end
end

-- newest is the revision of the bucket as text.
local function newest() return b.revision == micros and time or int(b.revision) end

local function put(w, there)
  local ends = w.ttl == '' and '0' or int(now + 1 + w.ttl) -- a part of now's millisecond has passed: nothing may be early
  local revision = newest()
  local epoch = there and there[2] or revision
  b.values = b.values + call('HSET', VALUES, w.name, revision .. ' ' .. epoch .. ' ' .. time .. ' ' .. ends .. ' ' .. w.data)
  if not there then call('ZADD', NAMES, 0, w.name) end
  call('ZADD', REVISIONS, revision, w.name)
  if b.gone > 0 then b.gone = b.gone - call('ZREM', GONE, w.name) end
  if ends ~= '0' then
    call('ZADD', ENDS, ends, w.name)
  elseif not there or there[4] ~= '0' then
    call('ZREM', ENDS, w.name)
  end
  return {'ok', revision, epoch, time, ends, ''}
end

-- NOTHING is the answer of a deletion.
local NOTHING = {'ok', '0', '0', '0', '0', ''}

local function remove(w)
  forget(w.name)
  b.gone = b.gone + call('ZADD', GONE, newest(), w.name)
  local much = b.gone - REMEMBERED
  if much > 0 then
    local oldest = call('ZRANGE', GONE, 0, math.min(much, 100) - 1, 'WITHSCORES')
    for i = 1, #oldest, 2 do b.gone = b.gone - call('ZREM', GONE, oldest[i]) end
    call('HSET', META, 'forgotten', int(oldest[#oldest]))
  end
  return NOTHING
end

-- remember notes how a write was answered: a deletion that found nothing, too, which repeated must not remove what was written since.
local function remember(w, result)
  if w.request == '' then return end
  local till = int(now + ARGV[3])
  b.requests = b.requests + call('HSET', REQUESTS, w.request, till .. ' ' .. result[2] .. ' ' .. result[3] .. ' ' .. result[4])
  call('ZADD', ASKED, till, w.request)
end

local function apply(w)
  local known = w.request ~= '' and answered(w.request)
  if known then return known end
  local there = get(w.name)
  local no = refusal(w, there)
  if no then return there and {no, unpack(there)} or {no, '0', '0', '0', '0', ''} end
  if w.delete and not there then
    remember(w, NOTHING)
    return NOTHING
  end
  b.revision = math.max(b.revision + 1, micros)
  local result = w.delete and remove(w) or put(w, there)
  remember(w, result)
  w.told = not w.quiet
  return result
end

-- change makes the writes of a bucket.
local function change(bucket)
  enter(bucket)
  sweep(b.expired, b.outdated)
  local results = {}
  for i, w in ipairs(b) do results[i] = apply(w) end
  if b.revision ~= b.before then call('HSET', META, 'revision', newest()) end
  for _, w in ipairs(b) do
    if w.told then call('PUBLISH', META, w.name) end
  end
  return results
end

local buckets, at = {}, 4
for keys = 1, #KEYS, 8 do
  local bucket = {keys = keys, asking = false}
  for i = 1, tonumber(ARGV[at]) do
    bucket[i] = {name = ARGV[at + 1], delete = ARGV[at + 2] == 'd', condition = ARGV[at + 3], ttl = ARGV[at + 4], fence = ARGV[at + 5],
      epoch = ARGV[at + 6], request = ARGV[at + 7], quiet = ARGV[at + 8] == '1', data = ARGV[at + 9]}
    bucket.asking = bucket.asking or bucket[i].request ~= ''
    at = at + 9
  end
  at = at + 1
  buckets[#buckets + 1] = bucket
end
local results = {millis}
if #buckets == 1 then
  look(buckets[1])
else
  for _, bucket in ipairs(buckets) do bucket.foreign = not pcall(look, bucket) end
end
for i, bucket in ipairs(buckets) do results[i + 1] = bucket.foreign and '' or change(bucket) end
return results
