-- memory: what was done lately, so that a repeated request finds out.
-- remember keeps a field for 60 to 120 seconds: two hashes take turns, and each is forgotten as a whole.
local function remember(field, value)
  local turn = floor(now / 60000)
  local k = KEYS[MEMORY + turn % 2]
  call('HSET', k, field, value)
  if call('PTTL', k) == -1 then call('PEXPIREAT', k, (turn + 2) * 60000) end
end
local function recall(field)
  local turn = floor(now / 60000)
  return call('HGET', KEYS[MEMORY + turn % 2], field) or call('HGET', KEYS[MEMORY + (turn + 1) % 2], field)
end
