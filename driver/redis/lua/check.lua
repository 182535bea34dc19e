-- check: tells whether a message is still held. Of one that is not it hears that its holder lives.
-- Fragments: head, types, memory, answers, identify, segments, store, chain, state, losses, leases.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 token of the lease it is believed to be in, 2 sequence number.
-- Returns {"k"} or {"l"}.
if holder_of(FIRST, ARGV[1], ARGV[2]) then return {'k'} end
hear_late(FIRST, ARGV[1], ARGV[2])
store_leases(FIRST)
commit()
return {'l'}
