-- ungroup: takes a group out of the topic, so that it gets nothing more, or ends its deletion.
-- Fragments: head, types.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 shards, 2 name of the group, 3 "begin" or "end".
-- Returns {"ok", epoch, groups}, {"missing"} or {"members", how many}.
local o = FIRST
local topic = call('HMGET', TOPIC, 'shards', 'epoch', 'groups', 'letters', 'dying')
local letter = call('HGET', KEYS[o + GROUP], 'i')
if topic[1] ~= ARGV[1] or not letter then return {'missing'} end
local dying = topic[5] or ''
if ARGV[3] == 'end' then
  local i = find(dying, letter, 1, true)
  if not i then return {'missing'} end
  call('HSET', TOPIC, 'dying', part(dying, 1, i - 1) .. part(dying, i + 1))
  call('UNLINK', unpack(KEYS, o + 1, o + WIDTH))
  return {'ok', topic[2], topic[3]}
end
local members = call('ZCOUNT', KEYS[o + MEMBERS], '(' .. now, '+inf')
if members > 0 then return {'members', members .. ''} end
local i = find(topic[4], letter, 1, true)
if not i then return {'ok', topic[2], topic[3]} end -- begun before, and interrupted
local names = {}
for name in string.gmatch(topic[3], '%S+') do if name ~= ARGV[2] then names[#names + 1] = name end end
local epoch, groups = topic[2] + 1 .. '', table.concat(names, ' ')
call('HSET', TOPIC, 'epoch', epoch, 'groups', groups, 'letters', part(topic[4], 1, i - 1) .. part(topic[4], i + 1),
  'dying', dying .. letter)
call('PUBLISH', TOPIC, '!')
return {'ok', epoch, groups}
