-- slim: what plain begins with, instead of head.
local call, match, part, floor = redis.call, string.match, string.sub, math.floor
local TOPIC, BODIES, IDS, LIVE, SEGMENTS, SIZES, REQUESTS = unpack(KEYS, 1, 7)
