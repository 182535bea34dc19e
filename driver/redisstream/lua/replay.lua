-- replay: what is in the stream becomes ready again for a group.

-- start_of returns the first stream id of a position: "" the end, "b" the begin, "t" and a time, "r" and a stream id.
local function start_of(position)
  local kind, rest = string.sub(position, 1, 1), string.sub(position, 2)
  if kind == 'b' then return '0-0' end
  if kind == 't' then return rest .. '-0' end
  if kind == 'r' then return rest end
  return nil
end

-- replay makes every entry from a position on ready that the group does not have, and tells how many. Dry: only tells.
local function replay(g, from, cause, dry)
  local n = 0
  for _, entry in ipairs(call('XRANGE', STREAM, from, '+')) do
    local id, f, m = entry[1], index(entry[2]), meta(entry[1])
    if m and not state(g, id) and not unread(g, id) then
      n = n + 1
      if not dry then
        if call('HEXISTS', LEFT, id) == 0 then
          call('ZREM', KEPT, id)
          count('messages', 1)
          count('bytes', m.bytes)
        end
        call('HINCRBY', LEFT, id, 1)
        tally(g, 'received', 1)
        if call('SREM', of(g, 'skip'), id) == 0 then
          call('XCLAIM', STREAM, g, 'ferry', 0, id, 'FORCE', 'JUSTID')
          enter(g, id, {l = lane_of(f), k = f.key or '', p = m.place, f = 0, x = 0, r = 0, c = cause, n = now})
        end
      end
    end
  end
  return n
end
