-- member: as there, for a script of one group, which must be there, too. g is the group.
local g = ARGV[2]
ours_for(g)
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] or call('HEXISTS', GROUPS, g) == 0 then return {'stale'} end
