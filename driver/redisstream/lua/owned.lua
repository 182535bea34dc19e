-- owned: who is not the owner of the partition any more is turned away. ARGV: 1 partitions, 2 group, 3 member, 4 epoch of its ownership.
local topic = call('HMGET', KEYS[1], 'partitions', 'paused', 'next', 'prio')
local group = call('HMGET', G .. 'group', 'last', 'paused', 'reading', 'pass', 'pass0', 'pass1', 'pass2', 'pass3', 'whole')
local owner = call('HMGET', G .. 'owner', 'member', 'epoch', 'until')
if topic[1] ~= ARGV[1] or not group[1] then return {'stale'} end
if owner[1] ~= ARGV[3] or owner[2] ~= ARGV[4] or tonumber(owner[3]) <= at then return {'lost'} end
local paused = topic[2] == '1' or group[2] == '1'
