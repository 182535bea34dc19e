-- advance: lets what is due take effect: delays, waits, leases, TTLs, what is kept, dedup windows. Every script that looks or
-- claims begins with it, so that what is due is never late for anybody who looks, and nobody has to run a scheduler.
local function past(key, limit) return call('ZRANGEBYSCORE', key, '-inf', int(now), 'LIMIT', 0, limit) end

-- bury_unread makes an entry that a group has yet to read a dead letter of it, which it then skips.
local function bury_unread(g, id)
  call('SADD', made(of(g, 'skip')), id)
  bury(g, id, fresh(id, entry_of(id)), '', '', true)
end

-- expire_later ends a message that expired before it was due. A dead letter of it goes to every group: it becomes an entry for that.
local function expire_later(name, m)
  if call('HGET', TOPIC, 'expired_dead') ~= '1' or #groups() == 0 then return leave_later(name, m, 'expired') end
  local id = due(name, m)
  count('fanned', -1)
  count('expired', 1)
  for _, g in ipairs(groups()) do bury_unread(g, id) end
end

local function advance_delayed(limit)
  for _, mem in ipairs(past(DELAYED, limit)) do
    local name = string.sub(mem, 17)
    local at = tonumber(call('ZSCORE', DELAYED, mem))
    local m = unlater(name)
    if not m then
      call('ZREM', DELAYED, mem)
    elseif m.exp > 0 and m.exp <= at then
      expire_later(name, m)
    else
      due(name, m, at)
    end
  end
end

local function advance_expired(limit)
  for _, id in ipairs(past(EXPIRES, limit)) do
    call('ZREM', EXPIRES, id)
    if string.sub(id, 1, 1) == 'L' then
      local name = string.sub(id, 2)
      local m = unlater(name)
      if m then expire_later(name, m) end
    else
      for _, g in ipairs(groups()) do
        local s = state(g, id)
        if s and s.s == 'I' then
          s.e = true
          save(g, id, s)
        elseif s and s.s ~= 'D' then
          take_out(g, id, s)
          expire(g, id, s)
        elseif not s and left(id) > 0 and unread(g, id) then
          if call('HGET', TOPIC, 'expired_dead') == '1' then
            bury_unread(g, id)
          else
            skip(g, id, 'expired')
          end
        end
      end
    end
  end
end

local function advance_waits(g, limit)
  for _, id in ipairs(past(of(g, 'wait'), limit)) do
    local s = state(g, id)
    if not s or s.s ~= 'W' then
      call('ZREM', of(g, 'wait'), id)
    else
      take_out(g, id, s)
      if s.tail then s.p = place() end
      s.n = s.t or now
      come_back(g, id, s)
    end
  end
end

-- advance_leases returns what was held too long. One lease may be of many messages, another of one alone.
local function advance_leases(g, limit)
  local lapsed = {}
  local function lapse(id, token, alone)
    local s = state(g, id)
    if not s or s.s ~= 'I' or s.alone ~= alone or not alone and s.o ~= token then return false end
    lapsed[#lapsed + 1] = {id, s.p}
    return true
  end
  one_by_one(g)
  for _, mem in ipairs(past(of(g, 'lease'), limit)) do
    if #lapsed >= limit then break end
    if string.sub(mem, 1, 1) == '*' then
      if not lapse(string.sub(mem, 2), nil, true) then call('ZREM', of(g, 'lease'), mem) end
    else
      local had = #lapsed
      for id in string.gmatch(call('HGET', of(g, 'claims'), mem) or '', '%S+') do lapse(id, mem, false) end
      if #lapsed == had then -- nothing is left of it
        call('HDEL', of(g, 'claims'), mem, '#' .. mem)
        call('ZREM', of(g, 'lease'), mem)
      end
    end
  end
  table.sort(lapsed, function(a, b) return a[2] < b[2] end)
  for _, x in ipairs(lapsed) do -- all are counted before the first one takes others with it
    x.s = state(g, x[1])
    unhold(g, x[1], x.s)
    lose(x.s)
    tally(g, 'redelivered', 1)
  end
  for _, x in ipairs(lapsed) do
    release_behind(g, x.s, {}, LOST)
    come_back(g, x[1], x.s)
  end
  for _, x in ipairs(lapsed) do
    if x.s.k ~= '' then front(g, x.s.k) end
  end
end

-- first_due returns when something of the partition is due next, or nil.
local function first_due()
  local best
  local function look(key)
    local score = call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    if score and (not best or tonumber(score) < best) then best = tonumber(score) end
  end
  for _, key in ipairs({DELAYED, EXPIRES, KEPT, WINDOWS}) do look(key) end
  for _, g in ipairs(groups()) do
    look(of(g, 'wait'))
    look(of(g, 'lease'))
  end
  return best
end

local function advance(limit)
  local due_at = call('HGET', TOPIC, 'next')
  if not due_at or (tonumber(due_at) or 0) > now then return end
  all_ours()
  advance_delayed(limit)
  advance_expired(limit)
  for _, g in ipairs(groups()) do
    advance_waits(g, limit)
    advance_leases(g, limit)
  end
  for _, id in ipairs(past(KEPT, limit)) do vanish(id, meta(id)) end
  for _, id in ipairs(past(WINDOWS, limit)) do
    call('ZREM', WINDOWS, id)
    call('HDEL', DEDUP, id)
  end
  soonest = first_due()
  if soonest then call('HSET', TOPIC, 'next', int(soonest)) else call('HDEL', TOPIC, 'next') end
end
