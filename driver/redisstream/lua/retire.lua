-- retire deletes the consumers of members that are gone, but only those that have nothing pending: DELCONSUMER would drop it.
local function retire(g)
  local living = {}
  for _, instance in ipairs(call('HVALS', of(g, 'names'))) do living[instance] = true end
  for _, c in ipairs(call('XINFO', 'CONSUMERS', STREAM, g)) do
    local f = index(c)
    if not living[f.name] and f.pending == 0 then call('XGROUP', 'DELCONSUMER', STREAM, g, f.name) end
  end
end

-- give_up ends the ownership of the partition, at once, and returns true.
local function give_up(g)
  call('HSET', of(g, 'owner'), 'member', '', 'until', now)
  call('HDEL', of(g, 'owner'), 'asked')
  call('SET', of(g, 'fence'), '')
  return true
end
