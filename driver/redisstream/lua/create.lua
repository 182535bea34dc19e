-- create: makes a partition.
-- ARGV: 1 partitions.
-- Returns {"ok"}, or {"other", number of partitions} when it exists with another number.
call('HSETNX', TOPIC, 'partitions', ARGV[1])
local n = call('HGET', TOPIC, 'partitions')
if n ~= ARGV[1] then return {'other', n} end
for _, key in ipairs({META, IDS, LEFT}) do call('HSET', key, '', string.rep('-', 65)) end
return {'ok'}
