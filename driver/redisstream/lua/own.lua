-- own: a member says that it lives, and takes, keeps or gives up a partition.
-- ARGV: 1 partitions, 2 group, 3 member, 4 life in ms, 5 "1" if the member should own the partition, 6 instance.
-- Returns {"stale"} or {"ok", epoch if it is the owner or "", list of the living members, "1" if there is a retention}.
local g, me, life = ARGV[2], ARGV[3], tonumber(ARGV[4])
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] or call('HEXISTS', GROUPS, g) == 0 then return {'stale'} end
local gone = call('ZRANGEBYSCORE', of(g, 'members'), '-inf', int(now))
if #gone > 0 then call('ZREM', of(g, 'members'), unpack(gone)) end
local changed = #gone > 0
if call('ZADD', of(g, 'members'), now + life, me) == 1 then changed = true end
call('HSET', of(g, 'names'), me, ARGV[6])
if #gone > 0 then call('HDEL', of(g, 'names'), unpack(gone)) end
if changed then retire(g) end
local owner = call('HMGET', of(g, 'owner'), 'member', 'epoch', 'until')
local free = not owner[1] or owner[1] == '' or tonumber(owner[3]) <= now
local epoch = ''
if ARGV[5] == '1' and (free or owner[1] == me) then
  epoch = owner[2]
  if free then
    epoch = int(tonumber(owner[2] or 0) + 1)
    call('SET', of(g, 'fence'), epoch) -- what an owner reads itself, it reads while this does not change
    if call('HGET', of(g, 'group'), 'reader') ~= ARGV[6] then
      call('HSET', of(g, 'group'), 'reader', ARGV[6], 'since', index(call('XINFO', 'STREAM', STREAM))['last-generated-id'])
    end
  end
  call('HSET', of(g, 'owner'), 'member', me, 'epoch', epoch, 'until', now + life)
elseif ARGV[5] ~= '1' and owner[1] == me then
  call('HSET', of(g, 'owner'), 'member', '', 'until', 0)
  call('SET', of(g, 'fence'), '')
  changed = true
end
if changed then call('PUBLISH', TOPIC, '!' .. g) end
return {'ok', epoch, call('ZRANGE', of(g, 'members'), 0, -1), call('HGET', TOPIC, 'retains') or ''}
