-- ungroup: removes a group with what it has not settled.
-- ARGV: 1 partitions, 2 group, 3 "1" to look only whether it has members.
-- Returns {"stale"}, {"missing", groups}, {"members", how many} or {"ok"}.
local g = ARGV[2]
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
if call('HEXISTS', GROUPS, g) == 0 then return {'missing', groups()} end
local members = call('ZCOUNT', of(g, 'members'), '(' .. int(now), '+inf')
if members > 0 then return {'members', members .. ''} end
if ARGV[3] == '1' then return {'ok'} end
local last = call('HGET', of(g, 'group'), 'last') or '0-0'
for _, entry in ipairs(call('XRANGE', STREAM, '(' .. last, '+')) do
  if call('HEXISTS', LEFT, entry[1]) == 1 and call('SISMEMBER', of(g, 'skip'), entry[1]) == 0 then drop(entry[1]) end
end
for _, id in ipairs(call('HKEYS', of(g, 'state'))) do
  local s = state(g, id)
  if s.s == 'D' then
    unbury(g, id)
    tidy(id)
  else
    drop(id)
  end
end
call('XGROUP', 'DESTROY', STREAM, g)
call('HDEL', GROUPS, g)
for _, name in ipairs(GROUP_KEYS) do call('UNLINK', of(g, name)) end
call('PUBLISH', TOPIC, '!' .. g)
return {'ok'}
