-- ungroup: removes some of what a group has not settled, and the group when nothing is left.
-- Fragments: head, types, there, meant, spread, state, read, sweep, names.
-- ARGV: 1 partitions, 2 group, 3 "1" to look only whether it has members, 4 cursor.
-- Returns {"stale"}, {"missing", groups}, {"members", how many} or {"ok", cursor or ""}.
local members = call('ZCOUNT', of(g, 'members'), '(' .. int(now), '+inf')
if members > 0 then return {'members', members .. ''} end
if ARGV[3] == '1' then return {'ok', ''} end
settled_reads(g)
local phase, last, seq, at = sweep(ARGV[4])
local function remove(id) cancel(g, id, state(g, id)) end
if phase == 's' then
  local entries, new = some(at, '+'), 0
  local read = read_so_far(g)
  for _, e in ipairs(entries) do
    if before(read, e[1]) then new = new + 1 else remove(e[1]) end
  end
  pass(g, new)
  if #entries == STEP then return {'ok', cursor_of('s', last, seq, entries[STEP][1])} end
  at = #entries > 0 and entries[#entries][1] or at
end
local beside_it = call('ZRANGE', of(g, 'off'), 0, STEP - 1)
for _, id in ipairs(beside_it) do remove(id) end
local dead = call('ZRANGE', of(g, 'dead'), 0, STEP - 1)
for _, id in ipairs(dead) do
  unbury(g, id)
  call('HDEL', of(g, 'state'), id)
  tidy(id)
end
if #beside_it == STEP or #dead == STEP then return {'ok', cursor_of(phase, last, seq, at)} end
call('XGROUP', 'DESTROY', STREAM, g)
call('HDEL', GROUPS, g)
unlink_group(g)
call('PUBLISH', TOPIC, '!' .. g)
return {'ok', ''}
