-- emit: ends one delivery and stores its follow-ups, all in the same topic shard, in one step.
-- Fragments: head, guard, types, memory, answers, identify, store, chain, state, losses, leases, fan, storing, settling.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 id of the request, 4 offset of the group, 5 to 10 the delivery, see settling, 11 and on the
--   follow-ups, see storing.
-- Returns as settle does, for one.
local before = recalled(ARGV[3])
if before then return before end
local o, ended = tonumber(ARGV[4]), {}
if holder_of(o, ARGV[5], ARGV[6]) then store_messages(11) end
local result = settle_one(o, 5, ended)
store_leases(o)
commit()
return settled(ARGV[3], result, ended)
