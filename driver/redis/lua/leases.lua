-- leases: what is held. LEASE has a record for each batch, by its token: the instance and then the items, on lines.
-- TIMER has its end, as the member "L" and the token. An extension of some of its messages splits them off into a lease of their
-- own, whose token is that of the claim, "." and a number.

-- lease_of returns a lease that has not ended, with its items by sequence number, or nil.
local leases = {}
local function lease_of(o, token)
  local l = leases[token]
  if l ~= nil then return l end
  l = false
  local till = call('ZSCORE', KEYS[o + TIMER], 'L' .. token)
  local record = till and tonumber(till) > now and call('HGET', KEYS[o + LEASE], token)
  if record then
    l = {token = token, till = till, order = {}, items = {}, left = 0}
    local instance, items = match(record, '^([^\n]*)(.*)$')
    l.instance = instance
    for item in string.gmatch(items, '\n([^\n]+)') do
      local seq = seq_of(item)
      if seq then l.order[#l.order + 1], l.items[seq], l.left = seq, item, l.left + 1 end
    end
  end
  leases[token] = l
  return l
end

-- leases_of returns the tokens of all leases that a claim may have become.
local family
local function leases_of(o, claim)
  if not attribute(o, 'split') then return {claim} end
  if not family then
    family = {}
    for _, token in ipairs(call('HKEYS', KEYS[o + LEASE])) do
      local claim = claim_of(token)
      family[claim] = family[claim] or {}
      table.insert(family[claim], token)
    end
  end
  return family[claim] or {}
end

-- holder_of returns the lease in which a message of a claim is held, or nil. An extension that crosses this request may have moved it, so
-- token is only where the caller believes it to be. A delivery that was lost belongs to another claim than the present one.
local function holder_of(o, token, seq)
  local l = lease_of(o, token)
  if l and l.items[seq] then return l end
  for _, other in ipairs(leases_of(o, claim_of(token))) do
    l = lease_of(o, other)
    if l and l.items[seq] then return l end
  end
end

-- unlease takes one message out of a lease.
local function unlease(o, l, seq)
  l.items[seq], l.left, l.changed = nil, l.left - 1, true
  tally(o, 'inflight', -1)
end

-- record_of returns the items of a lease, on lines.
local function record_of(l)
  local lines = {}
  for _, seq in ipairs(l.order) do lines[#lines + 1] = l.items[seq] end
  return table.concat(lines, '\n')
end

local function store_lease(o, l)
  if l.left == 0 then
    call('HDEL', KEYS[o + LEASE], l.token)
    call('ZREM', KEYS[o + TIMER], 'L' .. l.token)
    return
  end
  call('HSET', KEYS[o + LEASE], l.token, l.instance .. '\n' .. record_of(l))
end

-- store_leases writes those that changed.
local function store_leases(o)
  for _, l in pairs(leases) do
    if l and l.changed then store_lease(o, l) end
  end
end

-- release_behind returns, uncounted, what a claim holds of some keys behind a place of each, and lists it in ended. It was not seen by anybody
-- yet, since a key is handled in order, so it keeps its cause unless one is given. All that is held of a key is of one claim. The last
-- ones go first: each is then the first of its key, and nobody has to look for its place.
local function release_behind(o, token, places, ended, cause)
  local rest = {}
  for _, other in ipairs(leases_of(o, claim_of(token))) do
    local held = lease_of(o, other)
    for _, seq in ipairs(held and held.order or {}) do
      local item = held.items[seq]
      local key = item and key_of(item)
      local place = key and places[key] and place_of(item)
      if place and place > places[key] then rest[#rest + 1] = {seq = seq, held = held, item = item, place = place} end
    end
  end
  table.sort(rest, function(a, b) return a.place > b.place end)
  for _, r in ipairs(rest) do
    unlease(o, r.held, r.seq)
    local s = state_of(o, r.seq) or new_state(r.item)
    s.cause = cause or s.cause
    ended[#ended + 1] = r.seq
    come_back(o, r.item, s)
  end
end

-- lose ends a lease whose time is up: everything in it is lost, and comes back. It returns how much that was.
local function lose(o, token)
  call('ZREM', KEYS[o + TIMER], 'L' .. token)
  local record = call('HGET', KEYS[o + LEASE], token)
  if not record then return 0 end
  call('HDEL', KEYS[o + LEASE], token)
  local lost, places = {}, {}
  for item in string.gmatch(record, '\n(%d%d+@[^\n]+)') do
    lost[#lost + 1] = item
    local key = key_of(item)
    if key then places[key] = math.min(places[key] or math.huge, place_of(item)) end
  end
  tally(o, 'inflight', -#lost)
  tally(o, 'redelivered', #lost)
  if attribute(o, 'split') and next(places) then release_behind(o, token, places, {}, LOST) end
  for i = #lost, 1, -1 do
    local item = lost[i]
    local s = state_of(o, seq_of(item)) or new_state(item)
    count_loss(o, token, seq_of(item), s)
    come_back(o, item, s)
  end
  return #lost
end

-- hear_late is told of a delivery that is not held: its holder lives. A lease that has just ended is lost first.
local function hear_late(o, token, seq)
  for _, other in ipairs(leases_of(o, claim_of(token))) do
    if not lease_of(o, other) then lose(o, other) end
  end
  take_back(o, token, seq)
end

-- advance lets a group's timers that have run out take effect, up to a budget of messages, and returns what is left of that.
local function advance(o, budget)
  for _, member in ipairs(call('ZRANGEBYSCORE', KEYS[o + TIMER], '-inf', now, 'LIMIT', 0, budget)) do
    local letter, id, cost = part(member, 1, 1), part(member, 2), 1
    if letter == 'L' then
      cost = math.max(1, lose(o, id))
    elseif letter == 'W' then
      ready(o, id)
    else -- not ours, and it would be due for ever
      call('ZREM', KEYS[o + TIMER], member)
    end
    budget = budget - cost
    if budget <= 0 then return 0 end
  end
  return budget
end
