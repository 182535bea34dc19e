-- Counts of a shard and of its groups, all of one moment, with the server's time.
-- KEYS: topic, delayed, held, invalid; then of each group: hash, dead, members, four lanes, what came back to each
local out = {redis.call('TIME'), redis.call('HGETALL', KEYS[1])}
for i = 2, 4 do
	out[#out + 1] = redis.call('ZCARD', KEYS[i])
end
for at = 5, #KEYS, 11 do
	local heads = {}
	for lane = 3, 6 do
		heads[#heads + 1] = redis.call('LINDEX', KEYS[at + lane], 0)
		heads[#heads + 1] = redis.call('ZRANGE', KEYS[at + lane + 4], 0, 0)[1] or false
	end
	out[#out + 1] = {
		redis.call('HGETALL', KEYS[at]), redis.call('ZCARD', KEYS[at + 1]),
		redis.call('ZRANGE', KEYS[at + 2], 0, -1, 'WITHSCORES'), heads,
	}
end
return out
