-- purge: removes what is ready, waits or is delayed.
-- ARGV: 1 partitions, 2 group or "" for all and what is delayed.
-- Returns {"stale"}, {"missing", groups} or {"ok", how many}.
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
if ARGV[2] ~= '' and call('HEXISTS', GROUPS, ARGV[2]) == 0 then return {'missing', groups()} end
advance(1000)
local n = 0
for _, g in ipairs(groups()) do
  if ARGV[2] == '' or ARGV[2] == g then
    while fetch(g, 1000, 'ferry') > 0 do end
    for _, id in ipairs(call('HKEYS', of(g, 'state'))) do
      local s = state(g, id)
      if s.s == 'R' or s.s == 'W' then
        n = n + 1
        take_out(g, id, s)
        finish(g, id, 'cancelled')
      end
    end
  end
end
if ARGV[2] == '' then
  for _, mem in ipairs(call('ZRANGE', DELAYED, 0, -1)) do
    local name = string.sub(mem, 17)
    leave_later(name, unlater(name), 'cancelled')
    n = n + 1
  end
end
return {'ok', n .. ''}
