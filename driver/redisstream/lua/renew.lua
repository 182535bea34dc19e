-- renew: the fast part of own: a member says that it lives, and renews the partition if it is its own and should be. Whatever else there is to do is
-- left to what follows: members that came, went, drain or are gone, a partition that changes hands, claims that are noted whole.
local topic = call('HMGET', KEYS[1], 'partitions', 'keep', 'retains')
local owner = call('HMGET', G .. 'owner', 'member', 'epoch', 'until')
local mine = owner[1] == ARGV[3]
if topic[1] == ARGV[1] and ARGV[8] ~= '1' and mine == (ARGV[5] == '1') and owner[1] and tonumber(owner[3]) > at
  and call('HGET', G .. 'names', ARGV[3]) == ARGV[6] and call('EXISTS', G .. 'leaving', G .. 'bulk') == 0
  and call('ZCOUNT', G .. 'members', '-inf', at) == 0 and call('HEXISTS', T .. 'groups', ARGV[2]) == 1 then
  local members, known = call('ZRANGE', G .. 'members', 0, -1), false
  local whole = tonumber(topic[2] or 0) <= 0 and call('HLEN', T .. 'groups') == 1
  for _, m in ipairs(members) do
    known, whole = known or m == ARGV[3], whole and string.sub(m, -2) == '.2'
  end
  if known and whole == (call('HEXISTS', G .. 'group', 'whole') == 1) then
    call('ZADD', G .. 'members', at + ARGV[4] / 2, ARGV[3])
    if mine then call('HSET', G .. 'owner', 'until', at + ARGV[4]) end
    return {'ok', mine and owner[2] or '', members, topic[3] or ''}
  end
end
