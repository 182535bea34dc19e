-- split: the steps in which the number of partitions of a topic changes.
-- Fragments: head, types, names.
-- ARGV: 1 partitions, 2 "close" (only if there is nothing in it, and nobody), "open" or "drop", 3 how many there will be.
-- Returns {"ok"} or {"busy", what there is}.
all_ours()
local is = call('HGET', TOPIC, 'partitions')
if ARGV[2] == 'drop' then
  if is ~= 'closed' then return {'ok'} end
  unlink_all()
  return {'ok'}
end
if ARGV[2] == 'open' then
  if is == 'closed' then call('HSET', TOPIC, 'partitions', ARGV[3]) end
  return {'ok'}
end
if is ~= ARGV[1] and is ~= 'closed' then return {'busy', 'another number of partitions'} end
local dead, members = 0, 0
for _, g in ipairs(groups()) do
  dead = dead + call('ZCARD', of(g, 'dead'))
  members = members + call('ZCOUNT', of(g, 'members'), '(' .. int(now), '+inf')
end
for _, x in ipairs({{members, 'consumers'}, {call('XLEN', STREAM), 'messages in the stream'}, {call('HLEN', LATER), 'delayed or held messages'},
  {tonumber(call('HGET', TOPIC, 'messages') or 0), 'unsettled messages'}, {dead, 'dead letters'}, {call('ZCARD', INVALID), 'parse errors'}}) do
  if x[1] > 0 then return {'busy', int(x[1]) .. ' ' .. x[2]} end
end
call('HSET', TOPIC, 'partitions', 'closed', 'becomes', ARGV[3])
return {'ok'}
