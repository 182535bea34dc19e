-- purge: removes some of what one group, or the topic, has queued, in the order of the sequence numbers.
-- Fragments: head, guard, meant, types, memory, answers, once, identify, segments, store, chain, state, flight.
-- KEYS: the topic shard, and all its groups; behind them, the group that is being deleted, if that is meant.
-- ARGV: 1 shards, 2 epoch, 3 the group or "" for all groups and what is delayed, 4 id of the request, 5 look at
--   numbers above this one, 6 and up to this one, 7 how many to look at, 8 "1" to remove everything, dead and in flight too.
-- Returns {"missing"} if there is no such group, or {"ok", the number that was looked at last, or "" at the end, how many were removed}.
local after, upto, most, everything = tonumber(ARGV[5]), tonumber(ARGV[6]) or 0, tonumber(ARGV[7]), ARGV[8] == '1'
local removed, looked, at = 0, 0, after
local targets = {everything and FIRST + groups * WIDTH or o}
if ARGV[3] == '' then
  for other = FIRST, #KEYS - WIDTH, WIDTH do targets[#targets + 1] = other end
elseif #targets == 0 then
  return {'missing'}
end

local function purge_one(seq)
  if call('HEXISTS', PENDING, seq) == 1 then
    if ARGV[3] ~= '' or not call('ZSCORE', DELAYED, seq) then return end
    removed = removed + 1
    return leave_pending(seq, 'cancelled')
  end
  for _, o in ipairs(targets) do
    local place, s = where(o, seq)
    if place == 'I' and everything then
      unlive(attribute(o, 'i'), seq)
      removed = removed + 1
    elseif place ~= '' and place ~= 'I' and (place ~= 'D' or everything) then
      cancel(o, seq, place, s)
      removed = removed + 1
    end
  end
end

local finished = true
for _, segment in ipairs(call('ZRANGEBYSCORE', SEGMENTS, floor((after + 1) / 1024), floor(upto / 1024), 'LIMIT', 0, 16)) do
  segment = tonumber(segment) or 0 -- what is no number is damage, of which audit tells
  local from, to = math.max(segment * 1024, after + 1), math.min(segment * 1024 + 1023, upto)
  for n = from, to do
    if looked >= most then finished = false break end
    at, looked = n, looked + 1
    if call('HEXISTS', BODIES, n) == 1 then purge_one(n .. '') end
  end
  if not finished then break end
end
if finished and looked > 0 then finished = at >= upto or #call('ZRANGEBYSCORE', SEGMENTS, floor((at + 1) / 1024), floor(upto / 1024), 'LIMIT', 0, 1) == 0 end
commit()
return answer(ARGV[4], {'ok', finished and '' or at .. '', removed .. ''})
