-- list: reads some values in order of names. ARGV: 1 from where ("[" or "(" and a name), 2 up to where, 3 how many names to look at.
-- Returns now, the revision of the bucket, "1" if there may be more, the name that was looked at last; then name and
-- {revision, epoch, written, ends, data} of each.
local names = call('ZRANGE', NAMES, ARGV[1], ARGV[2], 'BYLEX', 'LIMIT', 0, ARGV[3])
local results = {millis, call('HGET', META, 'revision') or '0', #names == tonumber(ARGV[3]) and '1' or '', names[#names] or ''}
for _, name in ipairs(names) do
  local v = get(name)
  if v then
    results[#results + 1] = name
    results[#results + 1] = v
  end
end
return results
