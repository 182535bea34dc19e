-- peek: finds out, in one command for many topics, what is due and what can be claimed.
-- KEYS: sorted sets of what is due, lanes, and hashes.
-- ARGV: 1 one letter for each key: z for the lowest score, e for whether it exists, h for how many fields it has.
-- Returns {now, the answer for each key: a score, "" for none, or a number}, or {now} when none of the keys exists.
local clock = redis.call('TIME')
local answers = {clock[1] * 1000 + math.floor(clock[2] / 1000) .. ''}
local there = 0
for i = 1, #KEYS, 5000 do there = there + redis.call('EXISTS', unpack(KEYS, i, math.min(i + 4999, #KEYS))) end
if there == 0 then return answers end
for i = 1, #KEYS do
  local letter = string.sub(ARGV[1], i, i)
  if letter == 'z' then
    answers[i + 1] = redis.pcall('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2] or '' -- a foreign key is no set of ours
  else
    local n = redis.pcall(letter == 'e' and 'EXISTS' or 'HLEN', KEYS[i])
    answers[i + 1] = type(n) == 'number' and n .. '' or '0'
  end
end
return answers
