-- delete: removes one message, for one group or for all.
-- Fragments: head, guard, meant, types, memory, answers, once, identify, segments, store, chain, state, flight.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 the group or "", 4 id of the request, 5 sequence number, 6 which death of it is meant, or "0".
-- Returns {"ok"}, {"missing"}, {"pending"} (it belongs to the topic, not to a group), {"outlived"} (that death is over) or {"flying"}.
local seq = ARGV[5]
if call('ZSCORE', INVALID, seq) then
  if ARGV[3] ~= '' then return {'pending'} end
  unspoil(seq)
  return answer(ARGV[4], {'ok'})
end
if call('HEXISTS', BODIES, seq) == 0 then return {'missing'} end
if call('HEXISTS', PENDING, seq) == 1 then
  if ARGV[3] ~= '' then return {'pending'} end
  leave_pending(seq, 'cancelled')
  commit()
  return answer(ARGV[4], {'ok'})
end
local found = {}
for at = FIRST, #KEYS - WIDTH, WIDTH do
  if ARGV[3] == '' or o == at then
    local place, s = where(at, seq)
    if ARGV[6] ~= '0' and place ~= '' and not died(place, s, ARGV[6]) then return {'outlived'} end
    if place == 'I' then return {'flying'} end
    if place ~= '' then found[#found + 1] = {at, place, s} end
  end
end
if #found == 0 then return {'missing'} end
for _, f in ipairs(found) do cancel(f[1], seq, f[2], f[3]) end
commit()
return answer(ARGV[4], {'ok'})
