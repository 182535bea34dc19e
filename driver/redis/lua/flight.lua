-- flight: finds out what a group has in flight, for scripts that know a message by its number only.
-- in_flight returns the instance that holds a message, or nil.
local flying = {}
local function in_flight(o, seq)
  if not flying[o] then
    flying[o] = {}
    for _, record in ipairs(call('HVALS', KEYS[o + LEASE])) do
      local instance = match(record, '^[^\n]*')
      for s in string.gmatch(record, '\n%d(%d+)') do flying[o][s] = instance end
    end
  end
  return flying[o][seq]
end

-- where says where a message is for a group: "" nowhere, "I" in flight, "W" or "T" waiting, "D" dead, "R" ready.
local function where(o, seq)
  local s = state_of(o, seq)
  if s and s.letter == 'D' then return 'D', s end
  local live = call('HGET', LIVE, seq)
  if not live then live = call('HEXISTS', BODIES, seq) == 1 and call('HGET', TOPIC, 'solo') or '' end
  if not find(live, attribute(o, 'i'), 1, true) then return '' end
  if in_flight(o, seq) then return 'I', s end
  if s and (s.letter == 'W' or s.letter == 'T') then return s.letter, s end
  return 'R', s
end

-- died tells whether a message is the dead letter of that many deaths.
local function died(place, s, death) return place == 'D' and s.rounds + 1 == tonumber(death) end

-- unbury takes a dead letter out of the graves of its group, and returns whether the message is now nobody's.
local function unbury(o, seq)
  call('ZREM', KEYS[o + DEAD], seq)
  call('HDEL', KEYS[o + RECORD], seq)
  local graves = without(call('HGET', GRAVES, seq) or '', attribute(o, 'i'))
  if graves ~= '' then call('HSET', GRAVES, seq, graves) return false end
  call('HDEL', GRAVES, seq)
  return call('HGET', LIVE, seq) == ''
end

-- cancel removes a message for one group, wherever it is there but in flight.
local function cancel(o, seq, place, s)
  if place == 'D' then
    tally(o, 'cancelled', 1)
    local nobodys = unbury(o, seq)
    forget(o, seq)
    if nobodys then vanish(seq) end
    return
  end
  if place == 'R' then withdraw(o, seq) else take_waiting(o, seq, s) end
  done(o, seq, 'cancelled')
end
