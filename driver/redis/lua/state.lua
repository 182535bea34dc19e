-- state: what becomes of a message in one group after its first delivery.
--
-- STATE has a record only for messages that came back, wait or died: failed attempts, lost leases, rounds, cause of the
-- next delivery, a letter (R ready, W waits in its place, T waits and joins the tail, I in flight with a TTL, X expired
-- in flight, D dead), until when it waits, and the item.
local RETRY, LOST, RELEASED, REPLAY = 1, 2, 3, 5

local function state_of(o, seq)
  if not has(o + STATE) then return nil end
  local v = call('HGET', KEYS[o + STATE], seq)
  if not v then return nil end
  local failed, lost, rounds, cause, letter, till, item = match(v, '^(%d+) (%d+) (%d+) (%d+) (%a) (%d+) (.*)$')
  if not failed then return nil end -- damaged
  return {failed = failed, lost = lost, rounds = rounds, cause = cause, letter = letter, till = till, item = item}
end

local function new_state(item)
  return {failed = 0, lost = 0, rounds = 0, cause = 0, letter = 'R', till = 0, item = item}
end

local function save(o, seq, s)
  call('HSET', KEYS[o + STATE], seq, table.concat({s.failed, s.lost, s.rounds, s.cause, s.letter, s.till, s.item}, ' '))
  made(o + STATE)
end

-- forget drops what a group knows of a message that it has settled.
local function forget(o, seq)
  if has(o + LOSSES) then call('HDEL', KEYS[o + LOSSES], seq) end
  if not has(o + STATE) then return end
  call('HDEL', KEYS[o + STATE], seq)
  call('HDEL', KEYS[o + HISTORY], seq)
  call('HDEL', KEYS[o + EDITED], seq)
end

-- bury makes a message a dead letter. Its record: time, instance and failure, on lines; an empty failure means expired.
local function bury(o, seq, s, instance, failure)
  s.letter = 'D'
  save(o, seq, s)
  if has(o + LOSSES) then call('HDEL', KEYS[o + LOSSES], seq) end
  local place = call('HINCRBY', KEYS[o + GROUP], 'graves', 1)
  call('ZADD', KEYS[o + DEAD], place, seq)
  call('HSET', KEYS[o + RECORD], seq, now .. '\n' .. instance .. '\n' .. failure)
  unlive(attribute(o, 'i'), seq, attribute(o, 'i'))
end

-- done ends a message for its group, counted under a field.
local function done(o, seq, field)
  tally(o, field, 1)
  forget(o, seq)
  unlive(attribute(o, 'i'), seq)
end

-- expire ends a message that is past its TTL. It is in no structure of the group any more. What has changed in its state
-- and is not saved is in s.
local dies
local function expire(o, item, s)
  local seq = seq_of(item)
  if dies == nil then dies = call('HGET', TOPIC, 'expired_dead') == '1' end
  if dies then return bury(o, seq, s or state_of(o, seq) or new_state(item), '', '') end
  done(o, seq, 'expired')
end

local function strict(o, item) return attribute(o, 'o') == '0' and key_of(item) end

-- come_back returns a held item to its place, with the cause of its next delivery noted in s.
local function come_back(o, item, s)
  local seq = seq_of(item)
  if s.letter == 'X' or overdue(seq) then
    unhold(o, item)
    return expire(o, item, s)
  end
  s.letter = 'R'
  save(o, seq, s)
  rejoin(o, item)
end

-- wait makes an item that is in no chain, or held, wait.
local function wait(o, item, s, due, last, held)
  local seq = seq_of(item)
  if s.letter == 'X' or overdue(seq) then
    if held then unhold(o, item) end
    return expire(o, item, s)
  end
  s.letter, s.till = last and 'T' or 'W', due
  save(o, seq, s)
  local sooner = tonumber(call('ZRANGE', KEYS[o + TIMER], 0, 0, 'WITHSCORES')[2])
  if not sooner or due < sooner then timed(due) end
  call('ZADD', KEYS[o + TIMER], due, 'W' .. seq)
  tally(o, 'waiting', 1)
  if not held then return end
  if not last and strict(o, item) then rejoin(o, item) else unhold(o, item) end
end

-- unwait takes a waiting item out of the timers; one that blocks its key stays in its chain.
local function unwait(o, seq)
  call('ZREM', KEYS[o + TIMER], 'W' .. seq)
  tally(o, 'waiting', -1)
end

-- go_on makes an item ready that waits no more, or is not dead any more: in its place, or at the tail.
local function go_on(o, seq, s, last)
  if last then s.item = renewed(s.item) end
  local item = s.item
  s.letter = 'R'
  save(o, seq, s)
  if last or not strict(o, item) then return join(o, item, last) end
  local key = key_of(item)
  local c = chain_of(o, key)
  if not c then return join(o, item) end
  if c.first == item then front(o, key, c) end
end

-- ready ends the wait of an item.
local function ready(o, seq)
  unwait(o, seq)
  local s = state_of(o, seq)
  if s then go_on(o, seq, s, s.letter == 'T') end -- or it is damaged: audit will tell
end

-- take_waiting removes a waiting message from everything but its state.
local function take_waiting(o, seq, s)
  unwait(o, seq)
  if s.letter ~= 'W' or not strict(o, s.item) then return end
  s.letter = 'R'
  local c = chain_of(o, key_of(s.item))
  if not c then return end
  if c.first == s.item then return behead(o, s.item) end
  unlink(o, key_of(s.item), c, seq) -- not only marked: it may join another key, and the mark and its link are by its number
end
