-- extend: makes leases end one full lease from now.
-- ARGV: 1 partitions, 2 group, 3 lease in ms, 4 how many; then of each: id, token.
-- Returns {"stale"} or {"ok", k or l for each}.
local g = ARGV[2]
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] or call('HEXISTS', GROUPS, g) == 0 then return {'stale'} end
local results = {}
for n = 1, tonumber(ARGV[4]) do
  local id, token = ARGV[3 + 2 * n], ARGV[4 + 2 * n]
  local s = state(g, id)
  local till = s and s.s == 'I' and s.o == token and call('ZSCORE', of(g, 'lease'), id)
  local held = till and tonumber(till) > now
  if held then call('ZADD', of(g, 'lease'), now + ARGV[3], id) end
  results[n] = held and 'k' or 'l'
end
return {'ok', table.concat(results)}
