-- emit: ends one delivery and stores its follow-ups, all in the same topic shard, in one step.
-- Fragments: head, guard, meant, types, memory, answers, once, identify, segments, store, chain, state, losses, leases, fan, storing, settling.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 the group, 4 id of the request, 5 to 10 the delivery, see settling, 11 and on the
--   follow-ups, see storing.
-- Returns as settle does, for one.
if not o then return {'l', {}} end -- the group was deleted
local ended = {}
if holder_of(o, ARGV[5], ARGV[6]) then store_messages(11) end
local result = settle_one(o, 5, ended)
store_leases(o)
commit()
return answer(ARGV[4], {result, ended})
