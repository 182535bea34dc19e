-- stats: the counts of a partition.
-- Fragments: head, types, there, spread, state, fan, advance.
-- ARGV: 1 partitions.
-- Returns {"stale"} or {"ok", fields of the topic, {delayed, held, invalid}, of each group {name, order, fields, in flight, waiting,
--   dead, members, how long the oldest is ready in ms}}.
advance(1000)
local function in_flight(g)
  local n = size(of(g, 'flight'))
  for _, letters in ipairs(call('HVALS', of(g, 'bulk'))) do -- ids have no letters
    n = n + select(2, string.gsub(letters, 'h', ''))
  end
  return n
end
local all = {}
for _, g in ipairs(groups()) do
  local oldest = now
  local function older(n) if n and n < oldest then oldest = n end end
  for lane = 0, 3 do
    local first = call('ZRANGE', of(g, 'lane' .. lane), 0, 0)[1]
    local s = first and state(g, id_in(first))
    if s then older(s.n) end
  end
  local last = read_so_far(g)
  for _, e in ipairs(call('XRANGE', STREAM, '(' .. last, '+', 'COUNT', 10)) do
    if call('SISMEMBER', of(g, 'skip'), e[1]) == 0 then older(fresh(e[1]).n) end
  end
  all[#all + 1] = {g, call('HGET', GROUPS, g), call('HGETALL', of(g, 'group')), in_flight(g) .. '', call('ZCARD', of(g, 'wait')) .. '',
    call('ZCARD', of(g, 'dead')) .. '', call('ZRANGEBYSCORE', of(g, 'members'), '(' .. int(now), '+inf'), int(now - oldest)}
end
return {'ok', call('HGETALL', TOPIC), {call('ZCARD', DELAYED) .. '', call('ZCARD', HELD) .. '', call('ZCARD', INVALID) .. ''}, all}
