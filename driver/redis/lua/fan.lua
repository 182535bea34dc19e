-- fan: messages that become ready go to every group.
-- ready_for puts items, which are new and in order, into the lanes and chains of one group.
local function ready_for(o, items, keyed)
  tally(o, 'received', #items)
  local lanes, chains, links, changed = {}, {}, {}, {}
  if keyed then
    local keys, seen = {}, {}
    for i = 1, #items do
      local key = key_of(items[i])
      if key and not seen[key] then seen[key] = true keys[#keys + 1] = key end
    end
    local found = #keys > 0 and call('HMGET', KEYS[o + CHAIN], unpack(keys)) or {}
    for i = 1, #keys do
      if found[i] then
        local held, offered, last, first = match(found[i], '^(%d+) (%d) (%d+) (.*)$')
        chains[keys[i]] = {held = held, offered = offered, last = last, first = first}
      end
    end
  end
  for i = 1, #items do
    local item = items[i]
    local key = keyed and key_of(item)
    local c = key and chains[key]
    if key and c then
      if c.first == '' then c.first = item else links[#links + 1] = c.last links[#links + 1] = item end
      c.last, changed[key] = seq_of(item), true
    else
      local lane = lane_of(item)
      local l = lanes[lane]
      if not l then l = {} lanes[lane] = l end
      l[#l + 1] = item
      if key then chains[key], changed[key] = {held = 0, offered = 1, last = seq_of(item), first = item}, true end
    end
  end
  for lane, l in pairs(lanes) do
    if call('RPUSH', KEYS[o + LANE + lane], unpack(l)) == #l then wake(o) end
  end
  if #links > 0 then call('HSET', KEYS[o + NEXT], unpack(links)) end
  if keyed and next(changed) then
    local values = {}
    for key in pairs(changed) do
      local c = chains[key]
      values[#values + 1] = key
      values[#values + 1] = c.held .. ' ' .. c.offered .. ' ' .. c.last .. ' ' .. c.first
    end
    call('HSET', KEYS[o + CHAIN], unpack(values))
  end
end

-- fan_out gives items to all groups. The caller counts them.
local function fan_out(items, keyed)
  if groups == 1 and not implied and (known[6] or '') == '' then
    call('HSET', TOPIC, 'solo', letters)
  elseif not implied then
    local live = {}
    for i = 1, #items do
      live[2 * i - 1] = seq_of(items[i])
      live[2 * i] = letters
    end
    call('HSET', LIVE, unpack(live))
  end
  for o = FIRST, #KEYS - WIDTH, WIDTH do ready_for(o, items, keyed) end
end
