-- head: what every script begins with: the server's clock, and names for the keys.
-- KEYS 1 to 19 belong to the topic shard; 21 more follow for each group, of which the first is at offset 19 + 1.
-- keys.go lists them in the same order. A group is known in scripts by its offset.
local call, match, find, part, floor = redis.call, string.match, string.find, string.sub, math.floor
local clock = call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)
local soon = clock[2] % 1000 == 0 and now or now + 1 -- the next whole millisecond: what is due after it is never early
local TOPIC, BODIES, IDS, LIVE, GRAVES, DELAYED, HELD, EXPIRES, DEDUP, WINDOWS = unpack(KEYS, 1, 10)
local MEMORY, SEGMENTS, SIZES, INVALID, RAW, PROBLEMS, PENDING, REQUESTS = 11, unpack(KEYS, 13, 19)
local FIRST, WIDTH = 19, 21
local GROUP, LANE, BACK, CHAIN, NEXT, STATE, LEASE, TIMER, GONE = 1, 2, 6, 10, 11, 12, 13, 14, 15
local DEAD, RECORD, HISTORY, EDITED, MEMBERS, LOSSES = 16, 17, 18, 19, 20, 21

-- An item is a message as the lanes hold it: lane, sequence number, "@", time of publishing in ms, optionally "+" and
-- how much later it became ready, optionally "^" and its place, and with a key ":" and the key. Its place in the order of
-- what became ready is its sequence number, unless it became ready later. Numbers below 1e14 turn into text exactly.
local function lane_of(item) return part(item, 1, 1) end
local function seq_of(item) return match(item, '^%d(%d+)') end
local function key_of(item)
  local at = find(item, ':', 1, true) -- quicker than a pattern, and nothing before the key contains one
  return at and part(item, at + 1)
end
local function place_of(item)
  local own = find(item, '^', 1, true) and match(item, '^[%d@+]+%^(%d+)') -- the key may contain one, too
  return tonumber(own or match(item, '^%d(%d+)'))
end

-- renewed is an item that is ready again, or only now, so many ms after it was published, with a new place behind all others.
local function renewed(item)
  local head, published, key = match(item, '^(%d+)@(%d+)[^:]*(.*)$')
  return head .. '@' .. published .. '+' .. (now - published) .. '^' .. call('HINCRBY', TOPIC, 'seq', 1) .. key
end
