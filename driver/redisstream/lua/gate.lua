-- gate: the fast part of a claim. Where nothing but plain messages is to be had, they are read
-- and leased at once, or the owner is told to read them itself. Whatever else there is, is left to what follows.
local most, small, deep = tonumber(ARGV[6]), tonumber(ARGV[16]), ARGV[17] == '1'
local asked = math.min(most, small)
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
