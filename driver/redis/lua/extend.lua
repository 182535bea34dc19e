-- extend: makes leases end a while from now. Some of a lease's messages become a lease of their own.
-- Fragments: head, store, chain, state, leases.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 lease in ms, 2 token for what is split off, 3 how many, then token and sequence number for each.
-- Returns {one letter for each: k extended where it was, s moved to the new lease, l lost}.
local o = FIRST
local split = lease_of(o, ARGV[2])
local wanted, results, tokens = {}, {}, {}
for i = 1, tonumber(ARGV[3]) do
  local token, seq = ARGV[2 + 2 * i], ARGV[3 + 2 * i]
  local l = lease_of(o, token)
  if l and l.items[seq] then
    if not wanted[token] then wanted[token] = {} tokens[#tokens + 1] = token end
    wanted[token][#wanted[token] + 1] = seq
    results[i] = 'k'
  else
    results[i] = split and split.items[seq] and 's' or 'l'
  end
end
local till, moved = now + ARGV[1], {}
for _, token in ipairs(tokens) do
  local l = lease_of(o, token)
  if #wanted[token] == l.left then
    call('ZADD', KEYS[o + TIMER], till, 'L' .. token)
  else
    for _, seq in ipairs(wanted[token]) do
      split = split or {token = ARGV[2], instance = l.instance, order = {}, items = {}, left = 0}
      split.order[#split.order + 1], split.items[seq], split.left = seq, l.items[seq], split.left + 1
      l.items[seq], l.left, l.changed, moved[seq] = nil, l.left - 1, true, token
    end
  end
end
if split then
  leases[ARGV[2]], split.changed = split, true
  call('ZADD', KEYS[o + TIMER], till, 'L' .. ARGV[2])
  call('HSET', KEYS[o + GROUP], 'split', '1')
end
for i = 1, #results do
  local token, seq = ARGV[2 + 2 * i], ARGV[3 + 2 * i]
  if moved[seq] == token then results[i] = 's' end
end
store_leases(o)
commit()
return {table.concat(results)}
