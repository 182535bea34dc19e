-- head: what every script begins with. KEYS: 1 hash: the newest revision, and up to which one deletions are forgotten, 2 hash: name to
-- value, 3 zset: names, 4 zset: names by when they expire, 5 zset: names by revision, 6 zset: deleted names by revision, 7 hash: request to
-- its answer, 8 zset: requests by when they are forgotten.
local call, match = redis.call, string.match
local META, VALUES, NAMES, ENDS, REVISIONS, GONE, REQUESTS, ASKED = unpack(KEYS, 1, 8)
local clock = call('TIME')
-- The server's microseconds and milliseconds, as text and as numbers: to print a number costs as much as a command.
local time = clock[1] .. string.rep('0', 6 - #clock[2]) .. clock[2]
local millis = string.sub(time, 1, -4)
local micros, now = tonumber(time), tonumber(millis)

local function int(n) return string.format('%.0f', n) end

-- parsed reads a value: {revision, epoch, written, ends, data}, or nil if there is none or it has expired.
local function parsed(v)
  if not v then return nil end
  local revision, epoch, written, ends, at = match(v, '^(%d+) (%d+) (%d+) (%d+) ()')
  if not revision or ends ~= '0' and tonumber(ends) <= now then return nil end
  return {revision, epoch, written, ends, string.sub(v, at)}
end
local function get(name) return parsed(call('HGET', VALUES, name)) end
