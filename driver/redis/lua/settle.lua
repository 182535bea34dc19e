-- settle: ends deliveries, each as one step, in order.
-- Fragments: head, types, memory, answers, identify, segments, store, chain, state, losses, leases, settling.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 id of the request, 2 how many; then six for each, see settling.
-- Returns {one letter for each, k settled or l lost, then a list of the sequence numbers that were returned with others of
--   their key}.
local before = answered(ARGV[1])
if before then return before end
local results, ended = {}, {}
for i = 1, tonumber(ARGV[2]) do results[i] = settle_one(FIRST, 6 * i - 3, ended) end
store_leases(FIRST)
commit()
return answer(ARGV[1], {table.concat(results), ended})
