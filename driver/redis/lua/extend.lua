-- extend: makes leases end a while from now. Some of a lease's messages become a lease of their own.
-- Fragments: head, types, memory, answers, store, chain, state, leases.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 lease in ms, 2 how many; then for each: token of its lease, sequence number, token for what is split off that lease.
--   That token belongs to one lease, so that what is found in it is known to come from there: a delivery that was lost is not
--   taken for the present one of the same message.
-- Returns {one letter for each: k extended where it was, s moved to the new lease, l lost}.
local o = FIRST
local wanted, results, tokens, splits = {}, {}, {}, {}
for i = 1, tonumber(ARGV[2]) do
  local token, seq, fresh = unpack(ARGV, 3 * i, 3 * i + 2)
  local l, split = lease_of(o, token), lease_of(o, fresh)
  if l and l.items[seq] then
    if not wanted[token] then
      wanted[token], splits[token] = {}, fresh
      tokens[#tokens + 1] = token
    end
    wanted[token][seq] = true
    results[i] = 'k'
  else
    results[i] = split and split.items[seq] and 's' or 'l' -- split off before, and the answer was lost
  end
end
local till = soon + ARGV[1]
for _, token in ipairs(tokens) do
  local l, n = lease_of(o, token), 0
  for _ in pairs(wanted[token]) do n = n + 1 end
  if n == l.left then
    call('ZADD', KEYS[o + TIMER], till, 'L' .. token)
  else
    local fresh = splits[token]
    local split = lease_of(o, fresh) or {token = fresh, instance = l.instance, order = {}, items = {}, left = 0}
    for _, seq in ipairs(l.order) do
      if wanted[token][seq] and l.items[seq] then
        split.order[#split.order + 1], split.items[seq], split.left = seq, l.items[seq], split.left + 1
        l.items[seq], l.left = nil, l.left - 1
      end
    end
    leases[fresh], split.changed, l.changed = split, true, true
    call('ZADD', KEYS[o + TIMER], till, 'L' .. fresh)
    call('HSET', KEYS[o + GROUP], 'split', '1')
    for i = 1, #results do
      if results[i] == 'k' and ARGV[3 * i] == token then results[i] = 's' end
    end
  end
end
store_leases(o)
commit()
return {table.concat(results)}
