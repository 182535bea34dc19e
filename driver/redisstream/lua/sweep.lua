-- sweep: work on all messages of a partition, some in each call, so that no call takes long. A cursor has a phase (s the stream, o what is
-- beside it, d dead letters or delayed ones), where the work ends (a stream id and a number), and where it is.
local STEP = 100

local function sweep(cursor)
  if cursor == '' then
    local last = call('EXISTS', STREAM) == 1 and newest() or '0-0'
    return 's', last, tonumber(call('HGET', TOPIC, 'seq') or 0) or 0, '0-0'
  end
  local phase, last, seq, at = match(cursor, '^(%a) (%S+) (%d+) (%S+)$')
  return phase, last, tonumber(seq), at
end
local function cursor_of(phase, last, seq, at) return phase .. ' ' .. last .. ' ' .. int(seq) .. ' ' .. at end

-- some returns entries of the stream behind a place.
local function some(at, last) return call('XRANGE', STREAM, '(' .. at, last, 'COUNT', STEP) end

-- settled_reads sees to it that nothing is between unread and taken.
local function settled_reads(g)
  if call('HGET', of(g, 'group'), 'reading') then recover(g) end
end
