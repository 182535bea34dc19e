-- guard: the fast part of a booking: plain messages are leased.
-- ARGV: 1 partitions, 2 group, 3 member, 4 epoch, 5 token, 6 how many were asked for, 7 lease in ms, 8 most of one key, 9 how many there
--   are, 10 the last of them, 11 their stream ids in one text; then, if any has one, their keys, or "\1" for an entry that is another
--   program's or has a priority.
local n, plain = tonumber(ARGV[9]), not paused
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
