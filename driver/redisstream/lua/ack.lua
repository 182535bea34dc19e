-- ack: ends plain deliveries, handled or dropped.
-- Fragments: slim, hear, spread, ack_plain, ack_each, ack_keys, head, state.
-- ARGV: 1 partitions, 2 group, 3 "acked" or "dropped", 4 how many, 5 how many tokens; then of each token: itself, how many deliveries
--   it has, and their places in the claim, as ranges, if that was noted whole; then, in their order, the stream ids; the ids of the
--   messages; then the bytes of all; the bytes of each in one text; how long the handler of each took, in ns, in one text; the instance.
-- Returns {"stale"} or {"ok", of each k done, l not held, s not plain: to be settled otherwise}.
-- (What comes before has ended them; here what waited behind them is offered.)
for _, key in ipairs(behind) do front(ARGV[2], key) end
return {'ok', table.concat(results)}
