-- configure: sets fields of a topic, or pauses a group.
-- Fragments: head, types, there.
-- ARGV: 1 partitions, 2 "ensure" (only if nothing else is configured), "topic" or "group", 3 group; then fields and values.
-- Returns {"stale"}, {"missing", groups}, {"differs"} or {"ok"}.
if ARGV[2] == 'group' then
  if call('HEXISTS', GROUPS, ARGV[3]) == 0 then return {'missing', groups()} end
  call('HSET', of(ARGV[3], 'group'), unpack(ARGV, 4))
else
  if ARGV[2] == 'ensure' and call('HGET', TOPIC, 'configured') == '1' then
    for i = 4, #ARGV, 2 do
      if call('HGET', TOPIC, ARGV[i]) ~= ARGV[i + 1] then return {'differs'} end
    end
  end
  call('HSET', TOPIC, unpack(ARGV, 4))
  if (tonumber(call('HGET', TOPIC, 'keep') or 0) or 0) == 0 then -- what is settled from now on is gone at once, and nobody would forget how
    for _, g in ipairs(groups()) do call('UNLINK', of(g, 'done')) end
  end
end
call('PUBLISH', TOPIC, '!')
return {'ok'}
