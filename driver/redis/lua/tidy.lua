-- tidy: gives back the memory of tables that were large and are empty now. Redis itself shrinks a hash only while it is used.
-- KEYS: hashes that have nothing but the long field that keeps them from being lists.
-- ARGV: for each the name of that field.
-- Returns {how many were empty}.
local empty = 0
for i = 1, #KEYS do
  if redis.call('HLEN', KEYS[i]) == 1 and redis.call('HEXISTS', KEYS[i], ARGV[i]) == 1 then
    redis.call('UNLINK', KEYS[i])
    redis.call('HSET', KEYS[i], ARGV[i], string.rep('-', 65))
    empty = empty + 1
  end
end
return {empty}
