-- extend: makes leases end one full lease from now.
-- Fragments: slim, hear, spread.
-- ARGV: 1 partitions, 2 group, 3 lease in ms, 4 how many tokens; then of each token: itself, how many deliveries, their stream ids.
-- Returns {"stale"} or {"ok", k or l for each}.
if call('HGET', KEYS[1], 'partitions') ~= ARGV[1] or call('HEXISTS', T .. 'groups', ARGV[2]) == 0 then return {'stale'} end
call('HLEN', G .. 'state')
call('HLEN', G .. 'claims') -- what is written must be ours; the rest is read first
call('HLEN', G .. 'flight')
spread(G)
local results, ends, next_arg = {}, at + ARGV[3], 5
local function lives(member)
  local till = call('ZSCORE', G .. 'lease', member)
  return till and tonumber(till) > at
end
for _ = 1, tonumber(ARGV[4]) do
  local token, n, together = ARGV[next_arg], tonumber(ARGV[next_arg + 1]), {}
  local hold, valid = call('HMGET', G .. 'flight', unpack(ARGV, next_arg + 2, next_arg + 1 + n)), lives(token)
  for i = 1, n do
    local id, v, kept = ARGV[next_arg + 1 + i], hold[i], false
    if v and string.sub(v, 1, #token + 1) == token .. '/' then
      kept = valid
      if kept then together[id] = string.sub(v, #token + 1) end
    elseif v and string.sub(v, 1, #token + 1) == token .. '*' then
      kept = lives('*' .. id)
      if kept then call('ZADD', G .. 'lease', ends, '*' .. id) end
    end
    results[#results + 1] = kept and 'k' or 'l'
    if not kept then hear(id, token) end
  end
  local some = 0
  for _ in pairs(together) do some = some + 1 end
  if some > 0 and some == tonumber(call('HGET', G .. 'claims', '#' .. token)) then -- all that are left of it
    call('ZADD', G .. 'lease', ends, token)
  elseif some > 0 then
    for id, rest in pairs(together) do
      call('HSET', G .. 'flight', id, token .. '*' .. rest)
      call('ZADD', G .. 'lease', ends, '*' .. id)
    end
    call('HINCRBY', G .. 'claims', '#' .. token, -some)
  end
  next_arg = next_arg + 2 + n
end
return {'ok', table.concat(results)}
