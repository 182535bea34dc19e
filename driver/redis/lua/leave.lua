-- leave: returns what a subscription holds to its old place, uncounted, hears of what it has lost, and ends its membership.
-- Fragments: head, types, memory, answers, identify, segments, store, chain, state, losses, leases.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 id of the member, or "" to stay; 2 how many claims; then for each "l", or "u" if nobody has seen it, and its token; then for each
--   delivery that had begun token and sequence number.
-- Returns {how many messages were returned}.
local o = FIRST
local returned, claims = 0, tonumber(ARGV[2])
local function give_back(l, seen)
  for _, seq in ipairs(l.order) do
    local item = l.items[seq]
    unlease(o, l, seq)
    local s = state_of(o, seq) or new_state(item)
    if seen then s.cause = RELEASED end
    come_back(o, item, s)
    returned = returned + 1
  end
end
for i = 3, 2 + claims do
  for _, token in ipairs(leases_of(o, part(ARGV[i], 2))) do
    local l = lease_of(o, token)
    if l then give_back(l, part(ARGV[i], 1, 1) == 'l') end
  end
end
for i = 3 + claims, #ARGV, 2 do hear_late(o, ARGV[i], ARGV[i + 1]) end
if ARGV[1] ~= '' then call('ZREM', KEYS[o + MEMBERS], ARGV[1]) end
store_leases(o)
commit()
return {returned}
