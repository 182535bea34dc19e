-- browse: a page of messages in one state: those that are delayed, or wait, in the order of being due, dead letters in the order of dying,
--   others in the order of their sequence numbers.
-- Fragments: head, guard, meant, memory, answers, identify, segments, store, chain, state, flight, view.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 the group or "", 4 letter of the state, 5 place behind which to begin, 6 most of them, 7 most to look at.
-- Returns {"missing"} if there is no such group, or {"ok", views, how many were looked at, place behind them or "" at the end}; a view has its own
--   place behind it.
local AT_ONCE, NUMBERS, BYTES = 250, 1024, 4194304 -- one script looks at so many messages, tries so many numbers, and reads so much
local letter, place, most = ARGV[4], ARGV[5], tonumber(ARGV[6])
if ARGV[3] ~= '' and not o then return {'missing'} end
local views, scanned, bytes, scan = {}, 0, 0, math.min(tonumber(ARGV[7]), AT_ONCE)
local function room() return #views < most and scanned < scan and bytes < BYTES end

-- look takes in a message that is in the state.
local function look(seq)
  local v
  if o then v = view(o, seq, letter) elseif letter == 'X' then v = view_invalid(seq) else v = view_pending(seq) end
  scanned = scanned + 1
  if not v or v[3] ~= letter then return end
  v[14], views[#views + 1], bytes = place, v, bytes + #v[11]
end

-- rank returns how many members of a sorted set there are up to the place, which is a score, "_" and a member. Those of the same score, of
-- which there may be very many, are in the order of their texts.
local function rank(key)
  local score, last = match(place, '^([^_]*)_(.*)$')
  if not score then return 0 end
  local passed, upto = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
  while passed < upto do
    local middle = floor((passed + upto) / 2)
    if call('ZRANGE', key, middle, middle)[1] <= last then passed = middle + 1 else upto = middle end
  end
  return passed
end

-- sorted goes through a sorted set, of which the members behind a prefix are sequence numbers, and tells whether it has come to the end.
local function sorted(key, prefix)
  local from = rank(key)
  local list = call('ZRANGE', key, from, from + NUMBERS - 1, 'WITHSCORES')
  for i = 1, #list, 2 do
    if not room() then return false end
    place = list[i + 1] .. '_' .. list[i]
    local seq = match(list[i], '^' .. prefix .. '(.*)$')
    if seq then look(seq) end
  end
  return #list < 2 * NUMBERS
end

-- flights goes through what is in flight.
local function flights()
  local after, seqs = tonumber(place) or 0, {}
  in_flight(o, '')
  for seq in pairs(flying[o]) do
    if tonumber(seq) > after then seqs[#seqs + 1] = tonumber(seq) end
  end
  table.sort(seqs)
  for _, seq in ipairs(seqs) do
    if not room() then return false end
    place = seq .. ''
    look(place)
  end
  return true
end

-- stored goes through all messages there are, segment by segment.
local function stored()
  local at, tries = tonumber(place) or 0, NUMBERS
  while room() and tries > 0 do
    -- The score alone tells which segment it is: a member that differs from it is damaged, and must not lead back.
    local found = call('ZRANGEBYSCORE', SEGMENTS, floor((at + 1) / 1024), floor(1e14 / 1024), 'WITHSCORES', 'LIMIT', 0, 1)[2]
    if not found then return true end
    local first = floor(tonumber(found)) * 1024
    at = math.max(at, first - 1)
    while at < first + 1023 and room() and tries > 0 do
      at, tries = at + 1, tries - 1
      place = at .. ''
      if call('HEXISTS', BODIES, place) == 1 then look(place) end
    end
  end
  return false
end

local sets, ended = {L = DELAYED, H = HELD, X = INVALID, W = o and KEYS[o + TIMER], D = o and KEYS[o + DEAD]}, true -- none is done: nothing is kept
if sets[letter] then
  ended = sorted(sets[letter], letter == 'W' and 'W' or '')
elseif letter == 'I' then
  ended = flights()
elseif letter == 'R' then
  ended = stored()
end
return {'ok', views, scanned .. '', ended and '' or place}
