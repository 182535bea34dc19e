-- reset: makes some of what is kept ready again for a group, and skips some of what it has not had.
-- Fragments: head, types, there, meant, spread, state, fan, advance, read, sweep, replay.
-- ARGV: 1 partitions, 2 group, 3 from where on it is ready again ("" nothing is), 4 up to where ("" the end), 5 "1" to skip what is ready
--   before that, 6 cause of the deliveries, 7 "1" for a dry run, 8 "1" to force it, 9 "1" to look only whether it may be done, 10 cursor.
-- Returns {"stale"}, {"missing", groups}, {"members", how many} or {"ok", replayed, skipped, cursor or ""}.
local dry = ARGV[7] == '1'
local members = call('ZCOUNT', of(g, 'members'), '(' .. int(now), '+inf')
if members > 0 and ARGV[8] ~= '1' and not dry then return {'members', members .. ''} end
if ARGV[9] == '1' then return {'ok', '0', '0', ''} end
advance(1000)
settled_reads(g)
local from, to, replayed, skipped = start_of(ARGV[3]), start_of(ARGV[4]), 0, 0
local phase, last, seq, at = sweep(ARGV[10])
local function cut(id) return ARGV[5] == '1' and (not from or before(id, from)) end
local function skip_ready(id, s)
  if not s or s.s ~= 'R' or not cut(id) then return end
  skipped = skipped + 1
  if dry then return end
  cancel(g, id, s)
end
if phase == 'o' then
  for _, id in ipairs(call('ZRANGEBYSCORE', of(g, 'off'), '(' .. at, int(seq), 'LIMIT', 0, STEP)) do skip_ready(id, state(g, id)) end
  call('HDEL', of(g, 'group'), 'starting')
  return {'ok', replayed .. '', skipped .. '', ''}
end
local entries, new = some(at, last), 0
local read = read_so_far(g)
for _, e in ipairs(entries) do
  local id = e[1]
  if before(read, id) then
    if cut(id) and unread(g, id) then skipped = skipped + 1 end
    if cut(id) then new = new + 1 end
  else
    local s = state(g, id)
    skip_ready(id, s)
    if not s and from and not before(id, from) and (not to or before(id, to)) then
      local m = meta(id)
      if m.exp == 0 or m.exp > now then
        replayed = replayed + 1
        if not dry then replay(g, id, m, e[2], tonumber(ARGV[6])) end
      end
    end
  end
end
if not dry then pass(g, new) end
if #entries == STEP then return {'ok', replayed .. '', skipped .. '', cursor_of('s', last, seq, entries[STEP][1])} end
return {'ok', replayed .. '', skipped .. '', cursor_of('o', last, seq, '0')}
