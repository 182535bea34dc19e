-- claim: leases up to a number of messages to one subscription. Repeated with the same token it renews and returns the same
--   lease, as long as that has not ended.
-- Fragments: head, claiming, quick, types, memory, answers, identify, segments, store, chain, state, losses, leases.
-- KEYS: the topic shard, and one group.
-- ARGV: see claiming.
-- Returns {"stale"} when topic or group do not exist or have another number of shards; else {"ok", now, when the group's
--   next timer runs out or "", the lease's record, states, bodies, edited}; the last three are parallel to its items, and empty
--   if there is nothing to tell.

-- reply describes a lease.
local function reply(record)
  local seqs = {}
  for seq in string.gmatch(record, '\n%d(%d+)') do seqs[#seqs + 1] = seq end
  local states, bodies, edited = {}, {}, {}
  if #seqs > 0 and has(o + STATE) then
    states = call('HMGET', KEYS[o + STATE], unpack(seqs))
    if has(o + EDITED) then edited = call('HMGET', KEYS[o + EDITED], unpack(seqs)) end
  end
  if #seqs > 0 and #seqs <= tonumber(ARGV[11]) then bodies = call('HMGET', BODIES, unpack(seqs)) end
  return {'ok', now .. '', next_timer(), record, states, bodies, edited}
end

-- rest_of renews the lease of a claim whose answer was lost, without what has expired meanwhile, and returns its record.
-- Nobody has seen it, so nobody runs anything of it.
local function rest_of(l)
  for _, seq in ipairs(l.order) do
    local s, item = state_of(o, seq), l.items[seq]
    if s and s.letter == 'X' or overdue(seq) then
      unlease(o, l, seq)
      unhold(o, item)
      expire(o, item)
    end
  end
  if l.left == 0 then return '' end
  call('ZADD', KEYS[o + TIMER], soon + ARGV[4], 'L' .. token)
  return l.instance .. '\n' .. record_of(l)
end

if again then
  local l = lease_of(o, token)
  if l then
    local record = rest_of(l)
    store_leases(o)
    leases[token] = nil
    if record ~= '' then
      commit()
      return reply(record)
    end
  else
    lose(o, token)
  end
end
advance(o, 100)
if topic[2] == '1' or group[2] == '1' or most < 1 then
  store_leases(o)
  commit()
  return reply('')
end

local picked, keyed = {}, has(o + CHAIN)

-- pick takes an item and, of its key, as many more as the run allows.
local function pick(item)
  local seq = seq_of(item)
  local ended = has(o + GONE) and call('SREM', KEYS[o + GONE], seq) == 1
  if ended or overdue(seq) then
    behead(o, item)
    lists_only = {} -- the next of its key may have been put back
    return ended or expire(o, item)
  end
  local key = keyed and key_of(item)
  if not key then
    picked[#picked + 1] = item
    return
  end
  local c = chain_of(o, key) or {last = seq}
  c.held, c.offered = 0, false
  repeat
    picked[#picked + 1] = item
    c.held = c.held + 1
    item = behind(o, item)
    c.first = item or ''
  until not item or c.held >= run or #picked >= most or overdue(seq_of(item)) or waits(o, item)
  keep(o, key, c)
end

-- put_back returns what was pulled and has no room any more.
local function put_back(lane, items, from)
  lists_only[lane] = false
  for i = from, #items do call('ZADD', KEYS[o + BACK + lane], place_of(items[i]), items[i]) end
end

local function empty(lane)
  return call('EXISTS', KEYS[o + LANE + lane], KEYS[o + BACK + lane]) == 0
end

-- serve picks from one lane until it has n more, and returns whether the lane is empty.
local function serve(lane, n)
  local goal = math.min(#picked + n, most)
  while #picked < goal do
    local items = taken(lane, goal - #picked)
    if not items then return true end
    for i = 1, #items do
      if #picked >= goal then
        put_back(lane, items, i)
        break
      end
      pick(items[i])
    end
  end
  return false
end

-- share picks from all lanes by their weights: each claim moves its lane forward, and the one furthest behind is next.
local function share(open)
  local served = call('HMGET', KEYS[o + GROUP], 'pass', 'pass0', 'pass1', 'pass2', 'pass3')
  local pass, clock_now = {}, tonumber(served[1] or 0)
  for _, lane in ipairs(open) do
    pass[lane] = math.max(tonumber(served[2 + lane] or 0), clock_now)
  end
  while #picked < most and #open > 0 do
    local best = 1
    for i = 2, #open do if pass[open[i]] < pass[open[best]] then best = i end end
    local lane, had = open[best], #picked
    local dry = serve(lane, 1)
    if #picked > had then
      clock_now = pass[lane]
      pass[lane] = pass[lane] + (#picked - had) * tonumber(ARGV[7 + lane])
    end
    if dry then table.remove(open, best) end
  end
  local fields = {'pass', clock_now}
  for lane, value in pairs(pass) do
    fields[#fields + 1] = 'pass' .. lane
    fields[#fields + 1] = value
  end
  call('HSET', KEYS[o + GROUP], unpack(fields))
end

local open = {}
for lane = 3, 0, -1 do
  if not empty(lane) then open[#open + 1] = lane end
end
if ARGV[7] == '' or #open == 1 then
  for _, lane in ipairs(open) do serve(lane, most) end
elseif #open > 1 then
  share(open)
end
for lane = 0, 3 do sweep(o, lane) end

local record = ''
if #picked > 0 then
  record = instance .. '\n' .. table.concat(picked, '\n')
  call('HSET', KEYS[o + LEASE], token, record)
  call('ZADD', KEYS[o + TIMER], soon + ARGV[4], 'L' .. token)
  tally(o, 'inflight', #picked)
end
store_leases(o)
commit()
local answer = reply(record)
if ttls then -- so that expiry knows that they run
  for i = 1, #picked do
    local seq = seq_of(picked[i])
    if call('ZSCORE', EXPIRES, seq) then
      local s = state_of(o, seq) or new_state(picked[i])
      s.letter = 'I'
      save(o, seq, s)
    end
  end
end
return answer
