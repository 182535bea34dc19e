-- numbers: what is counted or noted of a whole partition must be numbers, and ids of entries: nothing can be reckoned with the rest.
local function wrong_number(key, g, field, right)
  local v = call('HGET', key, field)
  if not v or tonumber(v) then return end
  problem('count', g, '', field .. ' is not a number', function() call('HSET', key, field, right and int(right()) or 0) end)
end
local function wrong_id(key, g, field, right)
  local v = call('HGET', key, field)
  if not v or valid(v) then return end
  problem('shape', g, '', field .. ' is not the id of an entry', function() call('HSET', key, field, right) end)
end

-- highest returns the highest score in sets whose scores are counted.
local function highest(keys)
  local n = 0
  for _, key in ipairs(keys) do n = math.max(n, tonumber(call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2] or 0)) end
  return n
end

local function numbers()
  if call('EXISTS', STREAM) == 0 then return end
  local end_of_stream = newest()
  for _, field in ipairs({'messages', 'bytes', 'published', 'fanned', 'expired', 'cancelled'}) do wrong_number(TOPIC, '', field) end
  wrong_number(TOPIC, '', 'seq', function() -- what joined a tail has a number too: seconds are more than it has counted
    local counted = {LATERS, INVALID}
    for _, g in ipairs(groups()) do counted[#counted + 1] = of(g, 'off') end
    return math.max(highest(counted), floor(now / 1000))
  end)
  wrong_id(TOPIC, '', 'last', end_of_stream)
  wrong_id(TOPIC, '', 'prio', end_of_stream)
  for _, g in ipairs(groups()) do
    for _, field in ipairs({'received', 'acked', 'dropped', 'expired', 'cancelled', 'redelivered', 'retried', 'pass', 'pass0', 'pass1', 'pass2', 'pass3'}) do
      wrong_number(of(g, 'group'), g, field)
    end
    wrong_number(of(g, 'group'), g, 'graves', function() return highest({of(g, 'dead')}) end)
    wrong_id(of(g, 'group'), g, 'last', delivered(g))
    wrong_id(of(g, 'group'), g, 'since', delivered(g))
  end
end
