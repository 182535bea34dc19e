-- gate: the fast part of a claim. Who may not claim is turned away, and where nothing but plain messages is to be had, they are read
-- and leased at once, or the owner is told to read them itself. Whatever else there is, is left to what follows.
local most, small, deep = tonumber(ARGV[6]), tonumber(ARGV[16]), ARGV[17] == '1'
local asked = math.min(most, small)
local topic = call('HMGET', KEYS[1], 'partitions', 'paused', 'next', 'prio')
local group = call('HMGET', G .. 'group', 'last', 'paused', 'reading', 'pass', 'pass0', 'pass1', 'pass2', 'pass3', 'whole')
local owner = call('HMGET', G .. 'owner', 'member', 'epoch', 'until')
if topic[1] ~= ARGV[1] or not group[1] then return {'stale'} end
if owner[1] ~= ARGV[3] or owner[2] ~= ARGV[4] or tonumber(owner[3]) <= at then return {'lost'} end
local paused = topic[2] == '1' or group[2] == '1'
local entries
if not paused and not group[3] and not topic[4] and ARGV[15] == '' and (not topic[3] or (tonumber(topic[3]) or 0) > at)
  and call('EXISTS', G .. 'lane0', G .. 'lane1', G .. 'lane2', G .. 'lane3', G .. 'skip') == 0 then
  if deep then
    call('HSET', G .. 'group', 'reading', 1)
    return {'ok', string.format('%.0f', at), topic[3] or '', '1', {}, {}, {}}
  end
  for _, name in ipairs({'flight', 'bulk', 'claims', 'busy', 'offer'}) do call('HLEN', G .. name) end -- what a lease writes must be ours
  for _, name in ipairs({'meta', 'ids'}) do call('HLEN', T .. name) end
  for _, name in ipairs({'lease', 'chain'}) do call('ZCARD', G .. name) end
  local reply = call('XREADGROUP', 'GROUP', ARGV[2], ARGV[9], 'COUNT', asked, 'STREAMS', T .. 'stream', '>')
  if not reply then
    call('HSET', G .. 'group', 'hungry', 1)
    return {'ok', string.format('%.0f', at), topic[3] or '', '', {}, {}, {}}
  end
  entries = reply[1][2]
end
