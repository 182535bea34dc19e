-- invalid: moves a message in flight that cannot be decoded to the parse errors of its topic, whole.
-- Fragments: head, guard, meant, types, memory, answers, identify, segments, store, chain, state, losses, leases, flight.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 the group, 4 token of the lease, 5 sequence number, 6 what is wrong.
-- Returns {"ok"} or {"lost"}.
local seq = ARGV[5]
local l = o and lease_of(o, ARGV[4])
local item = l and l.items[seq]
local body = call('HGET', BODIES, seq)
if not item then return {'lost'} end
unlease(o, l, seq)
unhold(o, item)
store_leases(o)
if body then spoil(seq, body, ARGV[6]) end
done(o, seq, 'cancelled')
for other = FIRST, #KEYS - WIDTH, WIDTH do
  local place, s = where(other, seq)
  if place ~= '' and place ~= 'I' then cancel(other, seq, place, s) end
end
commit()
return {'ok'}
