-- browse: a page of messages in one state, oldest first.
-- Fragments: head, types, there, meant, spread, state, fan, advance, view.
-- ARGV: 1 partitions, 2 group or "", 3 letter of the state, 4 cursor, 5 most of them, 6 most to look at.
-- Returns {"stale"}, {"missing", groups} or {"ok", views, how many were looked at, cursor or ""}; a view of what is beside the stream has the
--   cursor behind it at the end.
local letter, cursor, most, scan = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
advance(1000)
local views, scanned = {}, 0

-- pages goes through a sorted set whose scores are all different.
local function pages(key, from, look)
  if from == '' then from = '-1' end
  local list = call('ZRANGEBYSCORE', key, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, scan)
  for i = 1, #list, 2 do
    local v = look(list[i])
    scanned, from = scanned + 1, list[i + 1]
    if v and v[3] == letter then
      v[14] = from
      views[#views + 1] = v
    end
    if #views >= most then return from end
  end
  return #list / 2 >= scan and from or ''
end

local function of_group(id) return view(g, id) end
local sorted = ({D = {of(g, 'dead'), of_group}, L = {LATERS, view_later}, H = {LATERS, view_later}, X = {INVALID, view_invalid}})[letter]
if sorted then
  local next_one = pages(sorted[1], cursor, sorted[2])
  return {'ok', views, scanned .. '', next_one}
end
if string.sub(cursor, 1, 1) ~= 's' then -- first what is not in the stream any more, because it was dead
  local next_one = pages(of(g, 'off'), cursor, of_group)
  if next_one ~= '' then return {'ok', views, scanned .. '', next_one} end
  cursor = 's0-0'
end
local at = string.sub(cursor, 2)
local entries = scan > scanned and call('XRANGE', STREAM, '(' .. at, '+', 'COUNT', scan - scanned) or {}
for _, e in ipairs(entries) do
  if #views >= most then return {'ok', views, scanned .. '', 's' .. at} end
  local v = not (has(of(g, 'off')) and call('ZSCORE', of(g, 'off'), e[1])) and view(g, e[1])
  scanned, at = scanned + 1, e[1]
  if v and v[3] == letter then views[#views + 1] = v end
end
return {'ok', views, scanned .. '', scanned >= scan and 's' .. at or ''}
