-- report: stores what a process says about its breakers, and returns which states are forced.
-- Fragments: head.
-- KEYS: 1 reports by process, 2 processes by when they reported, 3 forced breakers.
-- ARGV: 1 process, 2 its report or "", 3 how long reports are kept.
-- Returns breaker, state, breaker, state, ...
if ARGV[2] ~= '' then
  call('HSET', KEYS[1], ARGV[1], text(now) .. ' ' .. ARGV[2])
  call('ZADD', KEYS[2], text(now), ARGV[1])
end
local old = call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now - tonumber(ARGV[3])), 'LIMIT', 0, 100)
if #old > 0 then
  call('HDEL', KEYS[1], unpack(old))
  call('ZREM', KEYS[2], unpack(old))
end
return call('HGETALL', KEYS[3])
