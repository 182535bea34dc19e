-- guard: the fast part of a booking: who is not the owner any more is turned away, and plain messages are leased.
-- ARGV: 1 partitions, 2 group, 3 member, 4 epoch, 5 token, 6 how many were asked for, 7 lease in ms, 8 most of one key, 9 how many there
--   are, 10 the last of them, 11 their stream ids in one text; then, if any has one, their keys, or "\1" for an entry that is another
--   program's or has a priority.
local topic = call('HMGET', KEYS[1], 'partitions', 'paused')
local group = call('HMGET', G .. 'group', 'last', 'paused', 'whole')
local owner = call('HMGET', G .. 'owner', 'member', 'epoch', 'until')
if topic[1] ~= ARGV[1] or not group[1] then return {'stale'} end
if owner[1] ~= ARGV[3] or owner[2] ~= ARGV[4] or tonumber(owner[3]) <= at then return {'lost'} end
local n, plain = tonumber(ARGV[9]), topic[2] ~= '1' and group[2] ~= '1'
local ids, keys, aside
local function listed()
  if ids then return ids end
  ids = {}
  for id in string.gmatch(ARGV[11], '%S+') do ids[#ids + 1] = id end
  return ids
end
if #ARGV > 11 then
  keys = {unpack(ARGV, 12, 11 + n)}
  for i = 1, n do plain = plain and keys[i] ~= '\1' end
end
