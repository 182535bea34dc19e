-- ack_keys: keys of which nothing is held any more are free, and what waited behind is offered.
if #keys == 0 then return {'ok', table.concat(results)} end
local busy, idle, still = call('HMGET', G .. 'busy', unpack(keys)), {}, {}
local function without(held, ended)
  local done, rest = {}, {}
  for id in string.gmatch(ended, '%S+') do done[id] = true end
  for id in string.gmatch(held, '%S+') do
    if not done[id] then rest[#rest + 1] = id end
  end
  return table.concat(rest, ' ')
end
for x, key in ipairs(keys) do
  local rest = ''
  if busy[x] and busy[x] ~= freed[key] then rest = without(busy[x], freed[key]) end -- nearly always they are all that were held of it
  if rest == '' then
    idle[#idle + 1] = key
  else
    still[#still + 1] = key
    still[#still + 1] = rest
  end
end
if #idle > 0 then call('HDEL', G .. 'busy', unpack(idle)) end
if #still > 0 then call('HSET', G .. 'busy', unpack(still)) end
local behind = {}
if #idle > 0 and offers > 0 then
  local offered = call('HMGET', G .. 'offer', unpack(idle))
  for x, key in ipairs(idle) do
    if offered[x] then behind[#behind + 1] = key end
  end
end
if #behind == 0 then return {'ok', table.concat(results)} end
