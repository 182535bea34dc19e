-- peek: finds out, in one command for many topics, what is due and what can be claimed.
-- KEYS: sorted sets of what is due, and lanes.
-- ARGV: 1 one letter for each key: z for the lowest score, e for whether it exists.
-- Returns {now, the answer for each key: a score, "" for none, "1" or "0"}.
local clock = redis.call('TIME')
local answers = {clock[1] * 1000 + math.floor(clock[2] / 1000) .. ''}
for i = 1, #KEYS do
  if string.sub(ARGV[1], i, i) == 'z' then
    answers[i + 1] = redis.call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2] or ''
  else
    answers[i + 1] = redis.call('EXISTS', KEYS[i]) .. ''
  end
end
return answers
