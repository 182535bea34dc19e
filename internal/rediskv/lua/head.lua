-- head: what every script begins with. KEYS: 1 hash: the newest revision, and up to which one deletions are forgotten, 2 hash: name to
-- value, 3 zset: names, 4 zset: names by when they expire, 5 zset: names by revision, 6 zset: deleted names by revision, 7 hash: request to
-- its answer, 8 zset: requests by when they are forgotten.
local call, match = redis.call, string.match
local META, VALUES, NAMES, ENDS, REVISIONS, GONE, REQUESTS, ASKED = unpack(KEYS)
-- Nothing is written if a key is not ours: a script cannot take back what it has written.
for _, key in ipairs({META, VALUES, REQUESTS}) do call('HLEN', key) end
for _, key in ipairs({NAMES, ENDS, REVISIONS, GONE, ASKED}) do call('ZCARD', key) end
local clock = call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)

local function int(n) return string.format('%.0f', n) end

-- parsed reads a value: {revision, epoch, written, ends, data}, or nil if there is none or it has expired.
local function parsed(v)
  local revision, epoch, written, ends, at = match(v or '', '^(%d+) (%d+) (%d+) (%d+) ()')
  if not revision or ends ~= '0' and tonumber(ends) <= now then return nil end
  return {revision, epoch, written, ends, string.sub(v, at)}
end
local function get(name) return parsed(call('HGET', VALUES, name)) end
