-- purge: removes some of what is ready, waits or is delayed.
-- Fragments: head, types, there, meant, spread, state, fan, advance, read, sweep.
-- ARGV: 1 partitions, 2 group or "" for all and what is delayed, 3 cursor.
-- Returns {"stale"}, {"missing", groups} or {"ok", how many, cursor or ""}.
advance(1000)
local n = 0
local phase, last, seq, at = sweep(ARGV[3])

local function purge(g, id)
  local s = state(g, id)
  if s and (s.s == 'R' or s.s == 'W') then
    n = n + 1
    cancel(g, id, s)
  end
end

local targets = g ~= '' and {g} or groups()
if phase == 's' then
  local entries = some(at, last)
  for _, g in ipairs(targets) do
    settled_reads(g)
    local new = 0
    local read = read_so_far(g)
    for _, e in ipairs(entries) do
      if not before(read, e[1]) then
        purge(g, e[1])
      elseif entry_of(e[1]) then -- else the group skips it, and it went with the last other one that needed it
        new = new + 1
      end
    end
    local had = tonumber(call('HGET', of(g, 'group'), 'cancelled') or 0)
    pass(g, new)
    n = n + tonumber(call('HGET', of(g, 'group'), 'cancelled') or 0) - had
  end
  if #entries == STEP then return {'ok', n .. '', cursor_of('s', last, seq, entries[STEP][1])} end
  return {'ok', n .. '', cursor_of('o', last, seq, '0')}
end
-- behind returns members of a set whose scores are numbers of the sequence, and the score of the last one if there may be more.
local function behind(key)
  local list, members = call('ZRANGEBYSCORE', key, '(' .. at, int(seq), 'WITHSCORES', 'LIMIT', 0, STEP), {}
  for i = 1, #list, 2 do members[#members + 1] = list[i] end
  return members, #members == STEP and tonumber(list[#list]) or nil
end
if phase == 'o' then
  local more
  for _, g in ipairs(targets) do
    local ids, upto = behind(of(g, 'off'))
    for _, id in ipairs(ids) do purge(g, id) end
    if upto and (not more or upto < more) then more = upto end
  end
  if more then return {'ok', n .. '', cursor_of('o', last, seq, int(more))} end
  return {'ok', n .. '', g == '' and cursor_of('d', last, seq, '0') or ''}
end
local later, upto = behind(LATERS)
for _, name in ipairs(later) do
  local m = unpacked(call('HGET', LATER, name))
  if m and call('ZSCORE', DELAYED, m.member) then
    leave_later(name, unlater(name), 'cancelled')
    n = n + 1
  end
end
return {'ok', n .. '', upto and cursor_of('d', last, seq, int(upto)) or ''}
