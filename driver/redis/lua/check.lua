-- check: tells whether a message is still held, and changes nothing.
-- Fragments: head, types, memory, answers, store, chain, state, leases.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 token of the lease it is believed to be in, 2 sequence number.
-- Returns {"k"} or {"l"}.
return {holder_of(FIRST, ARGV[1], ARGV[2]) and 'k' or 'l'}
