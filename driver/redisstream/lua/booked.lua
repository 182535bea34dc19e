-- booked: leases what is plain; if that is all, the booking is done.
local leased = plain and call('EXISTS', G .. 'skip') == 0
if leased then -- no more than this is written
  for _, name in ipairs({'flight', 'bulk', 'claims', 'busy', 'offer', 'state'}) do call('HLEN', G .. name) end
  for _, name in ipairs({'lease', 'chain', 'lane0', 'lane1', 'lane2', 'lane3'}) do call('ZCARD', G .. name) end
  call('HLEN', T .. 'meta')
else
  ours_for(ARGV[2])
end
if n == 0 then
  call('HDEL', G .. 'group', 'reading')
  call('HSET', G .. 'group', 'hungry', 1)
  return {'ok', string.format('%.0f', at), {}, {}}
end
local function all()
  local list = {}
  for i = 1, n do list[i] = i end
  return list
end
local whole = leased and not keys and group[9] == '1' and all_plain()
if whole then
  aside = {}
  hold_whole(n, ARGV[11], ARGV[5], at + ARGV[7])
elseif leased then
  aside = lease(listed(), keys, ARGV[5], at + ARGV[7], tonumber(ARGV[8]))
else
  aside = all()
end
call('HSET', G .. 'group', 'last', ARGV[10])
call('HDEL', G .. 'group', 'reading')
if n < tonumber(ARGV[6]) then call('HSET', G .. 'group', 'hungry', 1) end
local told = whole and {} or notes(listed())
if #aside == 0 then return {'ok', string.format('%.0f', at), aside, told, whole and '1' or ''} end
