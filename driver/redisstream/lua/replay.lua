-- replay: what is in the stream becomes ready again for a group.

-- start_of returns the first stream id of a position: "" the end, "b" the begin, "t" and a time, "r" and a stream id.
local function start_of(position)
  local kind, rest = string.sub(position, 1, 1), string.sub(position, 2)
  if kind == 'b' then return '0-0' end
  if kind == 't' then return rest .. '-0' end
  if kind == 'r' then return rest end
  return nil
end

-- replay makes an entry ready that the group had read.
local function replay(g, id, m, fields, cause)
  local s = fresh(id, fields)
  need(id, m)
  if has(of(g, 'done')) then call('HDEL', of(g, 'done'), id) end
  if m.exp > 0 then timer(EXPIRES, m.exp, id) end
  tally(g, 'received', 1)
  call('XCLAIM', STREAM, g, 'ferry', 0, id, 'FORCE', 'JUSTID')
  if cause == s.c then
    s.w = 'ferry'
    return line(g, id, s)
  end
  s.c, s.n = cause, now
  enter(g, id, s)
end
