-- create: makes a partition.
-- Fragments: head, types.
-- ARGV: 1 partitions.
-- Returns {"ok"}, or {"other", number of partitions} when it exists with another number, {"closed"} while the number changes.
all_ours()
call('HSETNX', TOPIC, 'partitions', ARGV[1])
local f = call('HMGET', TOPIC, 'partitions', 'becomes')
if f[1] == 'closed' and f[2] == ARGV[1] then -- whoever changed it did not come to an end
  call('HSET', TOPIC, 'partitions', ARGV[1])
elseif f[1] == 'closed' then
  return {'closed'}
elseif f[1] ~= ARGV[1] then
  return {'other', f[1]}
end
for _, key in ipairs({META, IDS, LEFT}) do call('HSET', key, '', string.rep('-', 65)) end
return {'ok'}
