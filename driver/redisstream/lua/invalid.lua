-- invalid: moves an entry that turned out to be undecodable to the parse errors; no group has it any more.
-- Fragments: head, types, there, spread, state, read.
-- ARGV: 1 partitions, 2 stream id, 3 what is wrong.
-- Returns {"stale"} or {"ok"}.
local id = ARGV[2]
local entry, m = call('XRANGE', STREAM, id, id)[1], meta(id)
if not entry then -- another program has deleted it
  for _, g in ipairs(groups()) do cancel(g, id, state(g, id)) end
  return {'ok'}
end
for _, g in ipairs(groups()) do
  local s = state(g, id)
  if s then
    take_out(g, id, s)
    if s.s == 'D' then unbury(g, id) end
    forget(g, id)
    call('XACK', STREAM, g, id)
    tally(g, 'received', -1)
  elseif unread(g, id) then
    tally(g, 'received', -1)
  end
end
call('HDEL', LEFT, id)
count('messages', -1)
count('bytes', -m.bytes)
count('published', -1)
count('fanned', -1)
spoil(id, entry[2], ARGV[3])
vanish(id, m)
return {'ok'}
