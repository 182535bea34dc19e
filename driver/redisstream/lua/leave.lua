-- leave: returns what a member holds, uncounted, and lets go of the partition at once.
-- Fragments: head, types, member, spread, state, fan, advance, lost, retire, hear.
-- ARGV: 1 partitions, 2 group, 3 member, 4 tokens of claims whose answers did not come; then id and token of what it holds, or held and had
--   begun when it was lost.
-- Returns {"stale"} or {"ok"}.
advance(100)
return_lost(g, ARGV[4])
for n = 5, #ARGV, 2 do
  local id = ARGV[n]
  local s = state(g, id)
  if s and s.s == 'I' and s.o == ARGV[n + 1] then
    release_behind(g, s, {}, RELEASED)
    unhold(g, id, s)
    s.c = RELEASED
    come_back(g, id, s)
    if s.k ~= '' then front(g, s.k) end
  else
    hear(id, ARGV[n + 1])
  end
end
if ARGV[3] ~= '' then
  call('ZREM', of(g, 'members'), ARGV[3])
  call('ZREM', of(g, 'leaving'), ARGV[3])
  call('HDEL', of(g, 'names'), ARGV[3])
  retire(g)
  if call('HGET', of(g, 'owner'), 'member') == ARGV[3] then
    give_up(g)
  end
  call('PUBLISH', TOPIC, '!' .. g)
end
return {'ok'}
