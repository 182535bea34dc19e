-- settle: ends deliveries, each as one step, in order.
-- Fragments: head, types, member, spread, state, fan, advance, hear, held.
-- ARGV: 1 partitions, 2 group, 3 instance, 4 how many; then of each: id, token, outcome (a ack, r retry, d dead, l release,
--   u release of what no handler saw, x drop, ? only tells whether it is held), wait in ms, failure, how long the
--   handler took in ns.
-- Returns {"stale"} or {"ok", k or l for each, ids that were returned with others of their key}.
advance(100)

-- fail counts a failed attempt and adds the failure to the history, of which the newest ten are kept.
local function fail(id, s, failure)
  s.f = s.f + 1
  if failure == '' then return end
  local history = unpacked(call('HGET', of(g, 'history'), id)) or {}
  history[#history + 1] = {int(now), s.f .. '', failure}
  while #history > 10 do table.remove(history, 1) end
  call('HSET', made(of(g, 'history')), id, cmsgpack.pack(history))
end

gather()
local results, ended = {}, {}
for n = 1, tonumber(ARGV[4]) do
  local id, token, outcome, after, failure, took = unpack(ARGV, 6 * n - 1, 6 * n + 4)
  local s = state(g, id)
  local ours = held(g, id, s, token)
  results[n] = ours and 'k' or 'l'
  if not ours then hear(id, token) end
  if ours and outcome ~= '?' then
    local ordered = strict(g, s)
    if outcome == 'r' or outcome == 'l' or outcome == 'u' then release_behind(g, s, ended) end
    if outcome == 'a' or outcome == 'x' then
      take_out(g, id, s)
      finish(g, id, outcome == 'a' and 'acked' or 'dropped', took, ARGV[3])
    elseif outcome == 'd' then
      take_out(g, id, s)
      fail(id, s, failure)
      bury(g, id, s, ARGV[3], failure)
    else
      if outcome == 'r' then
        fail(id, s, failure)
        tally(g, 'retried', 1)
      end
      if outcome ~= 'u' then s.c = outcome == 'r' and RETRY or RELEASED end
      local tail = outcome == 'r' and not ordered
      local key = s.k
      unhold(g, id, s) -- without front: nobody may pass before it is in its place
      if after ~= '0' then
        wait(g, id, s, soon + after, tail)
      else
        if tail then s.p, s.n = place(), now end
        come_back(g, id, s)
      end
      if key ~= '' then front(g, key) end
    end
  end
end
spend()
return {'ok', table.concat(results), ended}
