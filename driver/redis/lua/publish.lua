-- publish: stores messages of one topic shard in order, and makes those that are due ready for every group.
-- Fragments: head, guard, types, memory, answers, identify, segments, store, chain, fan, storing.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 and on: see storing.
-- Returns what storing says.
local answer = store_messages(3)
commit()
return answer
