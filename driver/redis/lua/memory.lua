-- memory: what was done lately, so that what is repeated is found out.
-- remember keeps an id that a producer chose for 60 to 120 seconds after its message is gone: two hashes take turns, and each is
-- forgotten as a whole. Its long field keeps a hash from being a list that is searched.
local function remember(id, seq)
  local turn = floor(now / 60000)
  local k = KEYS[MEMORY + turn % 2]
  call('HSET', k, id, seq)
  if call('PTTL', k) == -1 then
    call('HSET', k, '\1', string.rep('-', 65))
    call('PEXPIREAT', k, (turn + 2) * 60000)
  end
end
local function recall(id)
  local turn = floor(now / 60000)
  return call('HGET', KEYS[MEMORY + turn % 2], id) or call('HGET', KEYS[MEMORY + (turn + 1) % 2], id)
end
