-- group: creates a group, or finds it.
-- Fragments: head, types, spread, state, fan, advance.
-- ARGV: 1 partitions, 2 group, 3 order (0 strict, 1 relaxed, "" not decided), 4 "1" to create it only if there is none at all,
--   5 where it begins.
-- Returns {"stale"}, {"order", its order}, {"keep"} when it begins in a history that is not kept, or {"ok", names of all groups, where it begins as long as that is not done}.
local g = ARGV[2]
ours(T, OF_TOPIC) -- and of the group alone, which may be one of very many
group_ours(g, OF_GROUP)
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
local order = call('HGET', GROUPS, g)
if not order and ARGV[5] ~= '' and tonumber(call('HGET', TOPIC, 'keep') or 0) <= 0 then return {'keep'} end
if not order and (ARGV[4] ~= '1' or #groups() == 0) then
  advance(1000)
  call('XGROUP', 'CREATE', STREAM, g, '$', 'MKSTREAM')
  call('HSET', GROUPS, g, ARGV[3] == '' and 'u' or ARGV[3])
  call('HSET', of(g, 'group'), 'last', newest())
  for _, name in ipairs({'flight', 'busy'}) do call('HSET', of(g, name), '', string.rep('-', 65)) end
  if ARGV[5] ~= '' then call('HSET', of(g, 'group'), 'starting', ARGV[5]) end
elseif order and ARGV[3] ~= '' and order ~= ARGV[3] then
  if order ~= 'u' then return {'order', order} end
  call('HSET', GROUPS, g, ARGV[3])
end
return {'ok', call('HKEYS', GROUPS), call('HGET', of(g, 'group'), 'starting') or ''}
