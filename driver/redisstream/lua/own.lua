-- own: a member says that it lives, and takes, keeps or gives up a partition. A member is planned with for half as long as what it owns
-- stays its own: when that ends, nobody counts on the dead any more. A partition goes to the member that should own it; one that it does
-- not take, because it died as well, goes to the first who looks after a grace; and an owner gives it up only to somebody who asks. One who
-- drains gives up at once, takes nothing, and is not planned with; it stays a member for what it still holds.
-- Fragments: slim, renew, head, types, spread, state, retire.
-- ARGV: 1 partitions, 2 group, 3 member, 4 life in ms, 5 "1" if the member should own the partition, 6 instance, 7 grace in ms, 8 "1" if it
--   drains.
-- The name of a member ends with the newest form of what is stored that it can read.
-- Returns {"stale"} or {"ok", epoch if it is the owner or "", list of the living members that do not drain, "1" if there is a retention}.
local g, me, life = ARGV[2], ARGV[3], tonumber(ARGV[4])
ours(T, {HLEN = {'topic', 'groups'}, XLEN = {'stream'}}) -- it runs most often of all, so that it looks at no more than it writes
group_ours(g, {HLEN = {'group', 'flight', 'bulk', 'claims', 'names', 'owner'}, ZCARD = {'lease', 'members', 'leaving'}})
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] or call('HEXISTS', GROUPS, g) == 0 then return {'stale'} end
local gone = call('ZRANGEBYSCORE', of(g, 'members'), '-inf', int(now))
if #gone > 0 then call('ZREM', of(g, 'members'), unpack(gone)) end
local changed = #gone > 0
if call('ZADD', of(g, 'members'), now + life / 2, me) == 1 then changed = true end
local drains = ARGV[8] == '1'
if drains and call('ZADD', of(g, 'leaving'), now + life / 2, me) == 1 then changed = true end
call('HSET', of(g, 'names'), me, ARGV[6])
if #gone > 0 then
  call('HDEL', of(g, 'names'), unpack(gone))
  call('ZREM', of(g, 'leaving'), unpack(gone))
end
if changed then retire(g) end
local owner = call('HMGET', of(g, 'owner'), 'member', 'epoch', 'until', 'asked')
local wants, free = ARGV[5] == '1' and not drains, not owner[1] or owner[1] == '' or tonumber(owner[3]) <= now
local left_over = not drains and owner[1] and tonumber(owner[3]) + tonumber(ARGV[7]) <= now
local epoch = ''

if free and (wants or left_over) then
  epoch = int(tonumber(owner[2] or 0) + 1)
  call('HDEL', of(g, 'owner'), 'asked')
  call('SET', of(g, 'fence'), epoch) -- what an owner reads itself, it reads while this does not change
  if call('HGET', of(g, 'group'), 'reader') ~= ARGV[6] then
    call('HSET', of(g, 'group'), 'reader', ARGV[6], 'since', delivered(g))
  end
elseif owner[1] == me and not free then
  if wants or not owner[4] and not drains then epoch = owner[2] else changed = give_up(g) end
elseif wants and not owner[4] then
  call('HSET', of(g, 'owner'), 'asked', 1)
  changed = true
elseif not owner[1] then
  changed = give_up(g) -- its grace begins
end
if epoch ~= '' then call('HSET', of(g, 'owner'), 'member', me, 'epoch', epoch, 'until', now + life) end
if changed then call('PUBLISH', TOPIC, '!' .. g) end
local staying, leaving, whole = {}, call('EXISTS', of(g, 'leaving')) == 1, call('HLEN', GROUPS) == 1 and not keeps()
for _, m in ipairs(call('ZRANGE', of(g, 'members'), 0, -1)) do
  whole = whole and string.sub(m, -2) == '.2'
  if not leaving or not call('ZSCORE', of(g, 'leaving'), m) then staying[#staying + 1] = m end
end
if whole then
  call('HSET', of(g, 'group'), 'whole', 1)
  -- A program of before may have ended the lease of a claim that it cannot read, and would end another one, too.
  for _, token in ipairs(call('HKEYS', of(g, 'bulk'))) do
    if string.sub(token, 1, 1) ~= '@' and not call('ZSCORE', of(g, 'lease'), token) then one_by_one(g) end
  end
elseif call('HDEL', of(g, 'group'), 'whole') == 1 then
  one_by_one(g)
end
return {'ok', epoch, staying, call('HGET', TOPIC, 'retains') or ''}
