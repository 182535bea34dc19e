-- trim: removes some of the oldest entries that are beyond the retention of a partition. One that a group has not settled stops it, or
-- is dropped, where that was chosen; one in flight always stops it.
-- Fragments: head, types, there, spread, state, fan, advance, read.
-- ARGV: 1 partitions; if an owner does it, 2 its group, else "", 3 member, 4 epoch of its ownership.
-- Returns {"stale"}, {"lost"} for one who is not the owner any more, or {"ok", removed, dropped, "1" if there is more, "1" if it waits for what is not settled}.
local f = call('HMGET', TOPIC, 'retain_age', 'retain_entries', 'retain_bytes', 'retain_drop')
if ARGV[3] then
  local owner = call('HMGET', of(ARGV[2], 'owner'), 'member', 'epoch', 'until')
  if owner[1] ~= ARGV[3] or owner[2] ~= ARGV[4] or tonumber(owner[3]) <= now then return {'lost'} end
end
advance(1000)
local age, most, bytes = tonumber(f[1] or 0), tonumber(f[2] or 0), tonumber(f[3] or 0)
local length, memory = call('XLEN', STREAM), bytes > 0 and call('MEMORY', 'USAGE', STREAM) or 0
local removed, dropped, waits, over = 0, 0, false, false
local was_keep = keep
keep = 0 -- what is dropped here is not kept

local function free(id)
  for _, g in ipairs(groups()) do
    local s = state(g, id)
    if s and s.s == 'I' then return false end
  end
  for _, g in ipairs(groups()) do
    local s = state(g, id)
    if s and s.s ~= 'D' then
      take_out(g, id, s)
      finish(g, id, 'dropped')
    elseif not s and unread(g, id) then
      skip(g, id, 'dropped')
    end
  end
  return true
end

for _, e in ipairs(call('XRANGE', STREAM, '-', '+', 'COUNT', 250)) do
  local id = e[1]
  over = age > 0 and halves(id) < now - age or most > 0 and length > most or bytes > 0 and memory > bytes
  if not over then break end
  if left(id) == 0 then
    vanish(id, meta(id))
  elseif f[4] == '1' and free(id) then
    dropped = dropped + 1
  else
    waits, over = true, false
    break
  end
  removed, length, memory = removed + 1, length - 1, memory - weight(e[2])
end
if removed > 0 then count('trimmed', removed) end
if dropped > 0 then count('overdue', dropped) end
keep = was_keep
return {'ok', removed .. '', dropped .. '', over and '1' or '', waits and '1' or ''}
