-- exchange: acknowledges messages and leases others to the same subscription, as one step: what ack and claim do, when both are simple.
-- Fragments: head, memory, answers, segments, acking, claiming.
-- KEYS: the topic shard, and one group.
-- ARGV: 1 to 11 see claiming; 12 "1" if there is room for the claim only once the messages are acknowledged; from 13 on see acking.
-- Returns {what ack does, what claim does}. For a half that is not simple, or meets a key that is not ours, that is {"slow"}: then it has changed
--   nothing, and the caller sends ack's or claim's own script, which will tell.

-- Both look before either writes, so that neither stumbles over the other's half-way.
local looked, known = pcall(ackable, 12)
local fine, ours = pcall(function()
  call('LLEN', lane)
  call('ZCARD', back)
  call('ZCARD', KEYS[o + TIMER])
  for _, k in ipairs({BODIES, KEYS[o + CHAIN], KEYS[o + NEXT]}) do call('HLEN', k) end
  return find_out()
end)
local acked, woken = looked and (known or 'ok') or 'slow', false
if looked and not known then woken = acknowledge(12) end
local claimed = {'slow'}
if fine and not ours then
  claimed = {'stale'}
elseif fine and (acked == 'ok' or ARGV[12] ~= '1') then
  claimed = quick_claim() or claimed
end
-- What the claim took needs no announcement.
if woken and call('EXISTS', unpack(KEYS, o + LANE, o + BACK + 3)) > 0 then wake_up() end
return {{acked}, claimed}
