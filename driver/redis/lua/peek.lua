-- peek: finds out, in one command for many topics, what is due and what can be claimed, and gives back the memory of tables that were large and
--   are empty now. Redis itself shrinks a hash only while it is used.
-- KEYS: sorted sets of what is due, lanes, and hashes.
-- ARGV: 1 one letter for each key: z for the lowest score, e for whether it exists, else it is a hash to tidy, and
--   the letter is the name of the long field that keeps it from being a list.
-- Returns {now, the answer for each key: a score, "" for none, or "1" if it exists or was tidied}, or {now} when none of the keys exists.
local clock = redis.call('TIME')
local answers = {clock[1] * 1000 + math.floor(clock[2] / 1000) .. ''}
local there = 0
for i = 1, #KEYS, 5000 do there = there + redis.call('EXISTS', unpack(KEYS, i, math.min(i + 4999, #KEYS))) end
if there == 0 then return answers end
local function tidy(key, field)
  if redis.pcall('HLEN', key) ~= 1 or redis.call('HEXISTS', key, field) == 0 then return '0' end
  redis.call('UNLINK', key)
  redis.call('HSET', key, field, string.rep('-', 65))
  return '1'
end
for i = 1, #KEYS do
  local letter = string.sub(ARGV[1], i, i)
  if letter == 'z' then
    answers[i + 1] = redis.pcall('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2] or '' -- a foreign key is no set of ours
  else
    answers[i + 1] = letter == 'e' and redis.call('EXISTS', KEYS[i]) .. '' or tidy(KEYS[i], letter)
  end
end
return answers
