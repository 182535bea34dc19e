-- leave: returns what a subscription holds to its old place, uncounted, and ends its membership.
-- Fragments: head, types, memory, answers, store, chain, state, leases.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 id of the member, or "" to stay; then tokens of claims.
-- Returns {how many messages were returned}.
local o = FIRST
local returned = 0
local function give_back(l)
  for _, seq in ipairs(l.order) do
    local item = l.items[seq]
    unlease(o, l, seq)
    local s = state_of(o, seq) or new_state(item)
    s.cause = RELEASED
    come_back(o, item, s)
    returned = returned + 1
  end
end
for i = 2, #ARGV do
  for _, token in ipairs(leases_of(o, ARGV[i])) do
    local l = lease_of(o, token)
    if l then give_back(l) end
  end
end
if ARGV[1] ~= '' then call('ZREM', KEYS[o + 20], ARGV[1]) end
store_leases(o)
commit()
return {returned}
