-- begin: notes that handlers are about to start. Repeated it changes nothing.
-- Fragments: head, types, memory, answers, identify, segments, store, chain, state, losses, leases.
-- KEYS: the topic shard, and one group.
-- ARGV: for each: token of the lease it is believed to be in, sequence number.
-- Returns {one letter for each: k noted, l lost}.
local results = {}
for i = 1, #ARGV, 2 do
  local token, seq = ARGV[i], ARGV[i + 1]
  local held = holder_of(FIRST, token, seq)
  if held then begin(FIRST, token, seq) end
  results[#results + 1] = held and 'k' or 'l'
end
return {table.concat(results)}
