-- drop: removes a partition with everything in it.
-- Fragments: head, types, there, names.
-- ARGV: 1 partitions, 2 "", 3 "1" to look only whether it has members.
-- Returns {"stale"}, {"members", group, how many} or {"ok"}.
for _, g in ipairs(groups()) do
  local members = call('ZCOUNT', of(g, 'members'), '(' .. int(now), '+inf')
  if members > 0 then return {'members', g, members .. ''} end
end
if ARGV[3] == '1' then return {'ok'} end
unlink_all()
call('PUBLISH', TOPIC, '!')
return {'ok'}
