-- ack: acknowledges messages, many at once.
-- Fragments: head, memory, answers, segments, acking.
-- KEYS: the topic shard, and one group.
-- ARGV: see acking.
-- Returns {"ok"}, or {"slow"} when something is not as believed: then nothing was changed, and settle will tell.
local known = ackable(0)
if known then return {known} end
if acknowledge(0) then wake_up() end
return {'ok'}
