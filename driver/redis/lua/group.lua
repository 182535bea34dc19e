-- group: creates topic and group in one shard if they do not exist, and joins a member.
-- Fragments: head, types.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 shards, 2 name of the group or "" for the topic alone, 3 its order (0 strict, 1 relaxed), 4 "1" if the order is meant,
--   "0" if only a default, 5 id of a member or "", 6 how long in ms it is one, 7 "1" if the group is only for a topic without any.
-- Returns {"ok", epoch, groups}, {"shards", how many there are}, {"order", the other order} or {"full"}.
local o = FIRST
local topic = call('HMGET', TOPIC, 'shards', 'epoch', 'groups', 'letters', 'dying')
if topic[1] and topic[1] ~= ARGV[1] then return {'shards', topic[1]} end
local epoch, groups, letters, dying = topic[2] or '0', topic[3] or '', topic[4] or '', topic[5] or ''
local group = call('HMGET', KEYS[o + GROUP], 'i', 'o', 'fixed')
if group[1] and group[3] == '1' and ARGV[4] == '1' and group[2] ~= ARGV[3] then return {'order', group[2]} end

local letter
if ARGV[2] ~= '' and not group[1] and not (ARGV[7] == '1' and letters ~= '') then
  for n = 33, 255 do
    local l = string.char(n)
    if not find(letters .. dying, l, 1, true) then letter = l break end
  end
  if not letter then return {'full'} end
end
if not topic[1] then -- long fields keep hashes from being lists that are searched
  call('HSET', BODIES, '-', string.rep('-', 65))
  call('HSET', IDS, '\1', string.rep('-', 65))
  call('HSET', TOPIC, 'shards', ARGV[1], 'epoch', epoch, 'groups', '', 'letters', '', 'seq', 0, '-', string.rep('-', 65))
end
if letter then
  epoch = epoch + 1 .. ''
  letters, groups = letters .. letter, groups == '' and ARGV[2] or groups .. ' ' .. ARGV[2]
  call('HSET', TOPIC, 'epoch', epoch, 'groups', groups, 'letters', letters)
  call('HSET', KEYS[o + GROUP], 'i', letter, 'name', ARGV[2], 'o', ARGV[3], 'fixed', ARGV[4], '-', string.rep('-', 65))
  call('PUBLISH', TOPIC, '!')
elseif group[1] and ARGV[4] == '1' and group[3] ~= '1' then
  call('HSET', KEYS[o + GROUP], 'o', ARGV[3], 'fixed', '1')
end
if ARGV[5] ~= '' then call('ZADD', KEYS[o + MEMBERS], now + ARGV[6], ARGV[5]) end
return {'ok', epoch, groups}
