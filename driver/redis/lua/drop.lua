-- drop: removes a topic shard with everything in it.
-- Fragments: head, guard, types.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 "", 4 "1" to only look for members.
-- Returns {"ok"} or {"members", group, how many}.
for o = FIRST, #KEYS - WIDTH, WIDTH do
  local members = call('ZCOUNT', KEYS[o + MEMBERS], '(' .. now, '+inf')
  if members > 0 then return {'members', call('HGET', KEYS[o + GROUP], 'name'), members .. ''} end
end
if ARGV[4] == '1' then return {'ok'} end
for i = 1, #KEYS, 1000 do call('UNLINK', unpack(KEYS, i, math.min(i + 999, #KEYS))) end
call('PUBLISH', TOPIC, '!')
return {'ok'}
