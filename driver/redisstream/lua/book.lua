-- book: takes over what the owner of a partition has read.
-- Fragments: slim, owned, guard, types, lease, booked, head, spread, state, read.
-- Returns {"stale"}, {"lost"}, or {"ok", now, places in the list of those that it does not get now, what META has of all, "1" if the claim
--   is noted whole}.
-- (The rest of guard, which comes before; here begins what is not plain.)
local g, rest = ARGV[2], {}
if leased then -- all are ours, of a key, and without a priority
  local q = queue()
  for _, x in ipairs(aside) do push(q, 1, listed()[x], keys[x]) end
  line_up(g, q)
  return {'ok', int(now), aside, told}
end
for i, x in ipairs(aside) do
  local key = keys and keys[x] or ''
  local id = listed()[x]
  rest[i] = {id, key == '\1' and entry_of(id) or key ~= '\1' and {'v', '1', 'key', key} or nil}
end
ahead(g, rest)
call('HSET', of(g, 'group'), 'last', ARGV[10])
return {'ok', int(now), aside, told}
