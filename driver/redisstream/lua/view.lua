-- view: a message as a group, or the topic, sees it: {group, stream id, letter, failed, lost, rounds, due, expires, instance,
-- published, fields, history, record}; the record of K is when it was settled, how long that took, and who did. Letters
-- are those of the states, K kept, L delayed, H held, X undecodable, of which due is when that was found.
local function view_later(name)
  local m = unpacked(call('HGET', LATER, name))
  if not m then return nil end
  local at = call('ZSCORE', DELAYED, m.member)
  return {'', '', at and 'L' or 'H', '0', '0', '0', at or '0', int(m.exp), '', int(m.pub), m.fields, {}, {}}
end

local function view_invalid(id)
  local x = unpacked(call('HGET', RAW, id))
  if not x then return nil end
  return {'', id, 'X', '0', '0', '0', x[3] or '0', '0', x[1], int(halves(id)), x[2], {}, {}}
end

local function view(g, id)
  local s, m = state(g, id), meta(id)
  if not m then return nil end
  local exp = int(m.exp)
  if s then
    return {g, id, s.s, s.f .. '', s.x .. '', s.r .. '', int(s.t or 0), exp, s.i or '', int(m.pub), content(g, id) or {},
      unpacked(call('HGET', of(g, 'history'), id)) or {}, unpacked(call('HGET', of(g, 'record'), id)) or {}}
  end
  local letter
  if shown(g, id) then
    letter = 'K'
  elseif left(id) > 0 and unread(g, id) then
    letter = 'R'
  end
  if not letter then return nil end
  local done = letter == 'K' and has(of(g, 'done')) and call('HGET', of(g, 'done'), id)
  local ended = done and {match(done, '^(%d+) (%d+) (.*)$')} or {}
  return {g, id, letter, '0', '0', '0', '0', exp, '', int(m.pub), content(g, id) or {}, {}, ended}
end
