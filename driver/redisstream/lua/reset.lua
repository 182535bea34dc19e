-- reset: makes a group start again from a position.
-- ARGV: 1 partitions, 2 group, 3 position, 4 "1" for a dry run, 5 "1" to force it, 6 "1" to look only whether it may be done.
-- Returns {"stale"}, {"missing", groups}, {"members", how many} or {"ok", replayed, skipped}.
local g, dry = ARGV[2], ARGV[4] == '1'
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
if call('HEXISTS', GROUPS, g) == 0 then return {'missing', groups()} end
local members = call('ZCOUNT', of(g, 'members'), '(' .. int(now), '+inf')
if members > 0 and ARGV[5] ~= '1' and not dry then return {'members', members .. ''} end
if ARGV[6] == '1' then return {'ok'} end
advance(1000)
while fetch(g, 1000, 'ferry') > 0 do end
local from, replayed, skipped = start_of(ARGV[3]), 0, 0
for _, id in ipairs(call('HKEYS', of(g, 'state'))) do
  local s = state(g, id)
  if s.s == 'R' and (not from or before(id, from)) then
    skipped = skipped + 1
    if not dry then
      take_out(g, id, s)
      finish(g, id, 'cancelled')
    end
  end
end
if from then replayed = replay(g, from, REPLAY, dry) end
return {'ok', replayed .. '', skipped .. ''}
