-- drop: removes a partition with everything in it.
-- Fragments: head, types, typed, names.
-- ARGV: 1 partitions, 2 "1" to look only whether it has members.
-- Returns {"stale"}, {"members", group, how many} or {"ok"}.
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
for _, g in ipairs(groups()) do
  local members = call('ZCOUNT', of(g, 'members'), '(' .. int(now), '+inf')
  if members > 0 then return {'members', g, members .. ''} end
end
if ARGV[2] == '1' then return {'ok'} end
for _, g in ipairs(groups()) do
  for _, name in ipairs(GROUP_KEYS) do call('UNLINK', of(g, name)) end
end
call('UNLINK', unpack(TOPIC_KEYS))
call('PUBLISH', TOPIC, '!')
return {'ok'}
