-- begin: notes that the handlers of deliveries are about to start.
-- Fragments: head, types, member, spread, state, held.
-- ARGV: 1 partitions, 2 group, 3 how many; then of each: id, token.
-- Returns {"stale"} or {"ok", k or l for each}.
local results = {}
for n = 1, tonumber(ARGV[3]) do
  local id, token = ARGV[2 * n + 2], ARGV[2 * n + 3]
  local s = state(g, id)
  local ours = held(g, id, s, token)
  results[n] = ours and 'k' or 'l'
  if ours and s.b ~= token then
    s.b = token
    save(g, id, s)
  end
end
return {'ok', table.concat(results)}
