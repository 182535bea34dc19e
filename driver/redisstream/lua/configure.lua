-- configure: sets fields of a topic, or pauses a group.
-- Fragments: head, types, there, meant.
-- ARGV: 1 partitions, 2 the group or "" for the topic, 3 "ensure" (only if nothing else is configured) or ""; then fields and values.
-- Returns {"stale"}, {"missing", groups}, {"differs"} or {"ok"}.
if ARGV[3] == 'ensure' and call('HGET', TOPIC, 'configured') == '1' then
  for i = 4, #ARGV, 2 do
    if call('HGET', TOPIC, ARGV[i]) ~= ARGV[i + 1] then return {'differs'} end
  end
end
call('HSET', g ~= '' and of(g, 'group') or TOPIC, unpack(ARGV, 4))
if (tonumber(call('HGET', TOPIC, 'keep') or 0) or 0) == 0 then -- what is settled from now on is gone at once, and nobody would forget how
  for _, other in ipairs(groups()) do call('UNLINK', of(other, 'done')) end
end
call('PUBLISH', TOPIC, '!')
return {'ok'}
