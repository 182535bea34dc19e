-- group: creates a group, or finds it.
-- ARGV: 1 partitions, 2 group, 3 order (0 strict, 1 relaxed, "" not decided), 4 "1" to create it only if there is none at all,
--   5 where it begins.
-- Returns {"stale"}, {"order", its order}, or {"ok", names of all groups}.
local g = ARGV[2]
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
local order = call('HGET', GROUPS, g)
if not order and (ARGV[4] ~= '1' or #groups() == 0) then
  advance(1000)
  call('XGROUP', 'CREATE', STREAM, g, '$', 'MKSTREAM')
  call('HSET', GROUPS, g, ARGV[3] == '' and 'u' or ARGV[3])
  names = nil
  call('HSET', of(g, 'group'), 'last', index(call('XINFO', 'STREAM', STREAM))['last-generated-id'])
  local from = start_of(ARGV[5])
  if from then replay(g, from, 0) end
elseif order and ARGV[3] ~= '' and order ~= ARGV[3] then
  if order ~= 'u' then return {'order', order} end
  call('HSET', GROUPS, g, ARGV[3])
end
return {'ok', call('HKEYS', GROUPS)}
