-- changes: reads what was written after a revision. ARGV: 1 the revision, 2 how many at most.
-- Returns {"forgotten"}, or now, up to which revision it is all, and of each in order of revisions: name and {revision, epoch, written,
-- ends, data}, or {revision} if it was deleted.
if (tonumber(call('HGET', META, 'forgotten') or 0) or 0) > tonumber(ARGV[1]) then return {'forgotten'} end
local most = tonumber(ARGV[2])
local found = {}
local function look(key, deleted)
  local list = call('ZRANGEBYSCORE', key, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
  for i = 1, #list, 2 do found[#found + 1] = {list[i], tonumber(list[i + 1]), deleted} end
end
look(REVISIONS, false)
look(GONE, true)
table.sort(found, function(a, b) return a[2] < b[2] end)
local upto = math.max(tonumber(call('HGET', META, 'revision') or 0) or 0, tonumber(ARGV[1]))
if #found > most then upto = found[most][2] end
local results = {millis, int(upto)}
for i = 1, math.min(#found, most) do
  local v = found[i][3] and {int(found[i][2])} or get(found[i][1])
  if v then
    results[#results + 1] = found[i][1]
    results[#results + 1] = v
  end
end
return results
