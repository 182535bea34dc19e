-- extend: makes leases end a while from now. Some of a lease's messages become a lease of their own.
-- Fragments: head, types, memory, answers, identify, segments, store, chain, state, losses, leases.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 lease in ms, 2 the number of what is split off, 3 how many; then for each: token of the lease it is believed to be in, sequence
--   number.
-- Returns {the token of the lease that each is in now, or "" when it is lost}.
local o = FIRST
local till, number = soon + ARGV[1], ARGV[2]
local wanted, held, found = {}, {}, {}
for i = 1, tonumber(ARGV[3]) do
  local token, seq = unpack(ARGV, 2 + 2 * i, 3 + 2 * i)
  local l = holder_of(o, token, seq)
  found[i] = l or false
  if not l then
    hear_late(o, token, seq)
  else
    local w = wanted[l.token]
    if not w then
      w = {n = 0, seqs = {}}
      wanted[l.token] = w
      held[#held + 1] = l
    end
    if not w.seqs[seq] then w.seqs[seq], w.n = true, w.n + 1 end
  end
end

-- split moves the wanted messages of a lease to one of their own, and returns that.
local function split(l, seqs)
  local fresh = claim_of(l.token) .. '.' .. number
  local moved = lease_of(o, fresh) or {token = fresh, instance = l.instance, order = {}, items = {}, left = 0}
  for _, seq in ipairs(l.order) do
    if seqs[seq] and l.items[seq] then
      moved.order[#moved.order + 1], moved.items[seq], moved.left = seq, l.items[seq], moved.left + 1
      l.items[seq], l.left = nil, l.left - 1
    end
  end
  leases[fresh], moved.changed, l.changed = moved, true, true
  call('HSET', KEYS[o + GROUP], 'split', '1')
  return moved
end

for _, l in ipairs(held) do
  local w = wanted[l.token]
  w.now = w.n < l.left and split(l, w.seqs) or l
  call('ZADD', KEYS[o + TIMER], till, 'L' .. w.now.token)
end
store_leases(o)
commit()
local tokens = {}
for i = 1, #found do tokens[i] = found[i] and wanted[found[i].token].now.token or '' end
return {tokens}
