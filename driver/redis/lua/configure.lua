-- configure: sets fields of a topic shard or of one group in it.
-- Fragments: head, guard, meant, types.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 the group or "", 4 "ensure" (only if no configuration was given yet) or "", 5 what to announce or "",
--   then fields and values.
-- Returns {"ok"}, {"missing"} if there is no such group, or {"differs", field, value it has}.
if ARGV[3] ~= '' and not o then return {'missing'} end
if ARGV[4] == 'ensure' and call('HGET', TOPIC, 'configured') == '1' then
  for i = 6, #ARGV, 2 do
    local value = call('HGET', TOPIC, ARGV[i]) or '0'
    if value ~= ARGV[i + 1] then return {'differs', ARGV[i], value} end
  end
  return {'ok'}
end
call('HSET', o and KEYS[o + GROUP] or TOPIC, unpack(ARGV, 6))
if ARGV[5] ~= '' then call('PUBLISH', TOPIC, ARGV[5]) end
return {'ok'}
