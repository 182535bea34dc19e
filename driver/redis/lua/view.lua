-- view: a message as a group, or the topic, sees it: {group, sequence number, letter, failed, lost, rounds, due, expires, instance,
-- published, content, history, record of a dead letter}. Letters are those of the states, R ready, I in flight, W waits, D dead; L delayed,
-- H held, X undecodable, of which due is when that was found. It changes nothing.
local function of_topic(seq, letter, due, expires)
  local body = call('HGET', BODIES, seq)
  local published = match(item_of(seq, body), '@(%d+)')
  return {'', seq, letter, '0', '0', '0', due, expires, '', published, body or '', {}, {}}
end

local function view_pending(seq)
  if call('HEXISTS', PENDING, seq) == 0 then return nil end
  local due = call('ZSCORE', DELAYED, seq)
  return of_topic(seq, due and 'L' or 'H', due or '0', call('ZSCORE', EXPIRES, seq) or '0')
end

local function view_invalid(seq)
  local raw = call('HGET', RAW, seq)
  if not raw then return nil end
  local problem = call('HGET', PROBLEMS, seq) or ''
  local found, text = match(problem, '^(%d+)\n(.*)$') -- programs of before noted no time
  return {'', seq, 'X', '0', '0', '0', found or '0', '0', text or problem, '0', raw, {}, {}}
end

-- failures are those of a history, see settling: time, attempt and failure of each.
local function failures(history)
  local all, at = {}, 1
  while true do
    local _, stop, ms, attempt, length = find(history, '^(%d+) (%d+) (%d+)\n', at)
    if not stop then return all end
    all[#all + 1] = {ms, attempt, part(history, stop + 1, stop + length)}
    at = stop + 1 + length
  end
end

-- view returns nil if the group has no such message, or has it in another state than the one that is wanted.
local function view(o, seq, wanted)
  local place, s = where(o, seq)
  local letter = place == 'T' and 'W' or place
  if letter == '' or wanted and letter ~= wanted or call('HEXISTS', PENDING, seq) == 1 then return nil end
  local body = call('HGET', BODIES, seq)
  if not body then return nil end
  local published = match(item_of(seq, body), '@(%d+)')
  local history = s and has(o + STATE) and call('HGET', KEYS[o + HISTORY], seq) or ''
  local record = letter == 'D' and call('HGET', KEYS[o + RECORD], seq) or ''
  s = s or new_state('')
  return {attribute(o, 'name'), seq, letter, s.failed .. '', s.lost .. '', s.rounds .. '', letter == 'W' and s.till or '0',
    call('ZSCORE', EXPIRES, seq) or '0', letter == 'I' and in_flight(o, seq) or '', published,
    has(o + EDITED) and call('HGET', KEYS[o + EDITED], seq) or body, failures(history), {match(record, '^([^\n]*)\n?([^\n]*)\n?(.*)$')}}
end
