-- configure: sets fields of a topic shard or of one group in it, if it exists.
-- Fragments: head, types.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 shards, 2 what: "topic", "group", "ensure" (only if no configuration was given yet), 3 what to announce or "",
--   then fields and values.
-- Returns {"ok"}, {"stale"} when topic or group do not exist or the number of shards differs, or {"differs", field, value
--   it has}.
local o = FIRST
local target = ARGV[2] == 'group' and KEYS[o + GROUP] or TOPIC
if call('HGET', TOPIC, 'shards') ~= ARGV[1] or call('EXISTS', target) == 0 then return {'stale'} end
if ARGV[2] == 'ensure' and call('HGET', TOPIC, 'configured') == '1' then
  for i = 4, #ARGV, 2 do
    local value = call('HGET', TOPIC, ARGV[i]) or '0'
    if value ~= ARGV[i + 1] then return {'differs', ARGV[i], value} end
  end
  return {'ok'}
end
call('HSET', target, unpack(ARGV, 4))
if ARGV[3] ~= '' then call('PUBLISH', TOPIC, ARGV[3]) end
return {'ok'}
