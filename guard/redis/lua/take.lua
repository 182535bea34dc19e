-- take: asks whether messages may pass their limits, many at once. A message passes all of its limits, and then counts in
-- each, or none; where it is refused it is a violation, once; if it only waits for its turn, it is one if it was published
-- too fast. Sent twice, it counts once.
-- Fragments: head, account, rules.
-- KEYS: 1 the index of blocked keys, 2 the rules that operators set; then for each item: account, window, messages that
--   were refused by when they were published.
-- ARGV: 1 name of the call; then for each message: name of the request, id or "", how long ago it was published, 1 to only
--   ask, number of items; for each item: limit and key as the index names them, rule, name of the rule, 1 if it is paced.
-- Returns for each message: 1 if it passes, the item that refuses longest, 1 if that is blocked, after how long (-1: never),
--   violations, length of the penalty, how long it takes until one more may pass.
local WAITS, FAST, NEWEST = 256, 128, 32
local this, replies, k, i = ARGV[1], {}, 3, 2

-- A bucket remembers of its newest calls how many messages passed, so that these pass without tokens when the call is sent
-- again; should it come after that many others, it costs tokens twice, which admits less, never more. paid is how many of
-- this call are left, and spent how many it let pass in all.
local paid, spent = {}, {}
local function calls_of(s, key)
  if paid[key] then return end
  local n = string.match(s.n or '', this .. ':(%d+)')
  paid[key], spent[key] = tonumber(n or 0), tonumber(n or 0)
end

-- A server whose clock was set back has counts from the future, which would hold up their key until it is that late again. They
-- are moved back together, so that the newest is from now: no more pass in a window, and it ends in its time.
local function set_back(window, rule)
  local ahead = call('ZRANGEBYSCORE', window, '(' .. text(now), '+inf', 'WITHSCORES')
  if #ahead == 0 then return false end
  local by = tonumber(ahead[#ahead]) - now
  for n = 1, #ahead, 2 do call('ZADD', window, text(tonumber(ahead[n + 1]) - by), ahead[n]) end
  call('PEXPIRE', window, millis(rule.window))
  return true
end

local function judge(s, key, window, packed, request)
  if s.w then return {ok = true, rule = rule_of('0 0 0 1 0 0 0 0 0')} end
  if blocked(s) then
    local till = tonumber(s.b)
    local cause, length = string.match(s.q or '', '^(%S+) (%d+)$')
    if cause == request then return {after = till - now, caused = tonumber(length), rule = rule_of(packed)} end -- sent twice
    return {blocked = true, after = till == 0 and -1 or till - now, rule = rule_of(packed)}
  end
  local rule = holding(s, packed)
  if rule.unlimited then return {ok = true, rule = rule} end
  if rule.burst > 0 then
    calls_of(s, key)
    if paid[key] > 0 then return {ok = true, again = true, rule = rule} end
    local missing = 1 - level(s, rule)
    if missing <= 1e-9 then return {ok = true, rule = rule} end
    if s.ta and tonumber(s.ta) > now then call('HSET', key, 'ta', text(now)) end -- as in set_back
    return {after = math.ceil(missing * rule.window / rule.limit), rule = rule}
  end
  if call('ZSCORE', window, request) then return {ok = true, again = true, rule = rule} end
  local cut = '(' .. text(now - rule.window)
  local n = call('ZCOUNT', window, cut, '+inf')
  if n < rule.limit then return {ok = true, rule = rule} end
  if set_back(window, rule) then return judge(s, key, window, packed, request) end
  local first = call('ZRANGEBYSCORE', window, cut, '+inf', 'WITHSCORES', 'LIMIT', n - rule.limit, 1)
  return {after = tonumber(first[2]) + rule.window - now, rule = rule}
end

-- A paced message that comes too soon after the one before it waits for the rest of a step. A clock that was set back makes
-- that no longer.
local function pace(window, a)
  local rule = a.rule
  if not a.ok then
    a.paced = true
    return a
  end
  if a.again or rule.unlimited or rule.burst > 0 then return a end
  local step = rule.window / rule.limit
  local newest = call('ZRANGE', window, -1, -1, 'WITHSCORES')[2]
  local wait = newest and math.min(math.ceil(tonumber(newest) + step - now), math.ceil(step)) or 0
  if wait <= 0 then return a end
  return {paced = true, after = wait, rule = rule}
end

local function count(s, key, window, request, a)
  local rule, till = a.rule, now + 60000000
  if a.again then
    if paid[key] then paid[key] = paid[key] - 1 end
    return
  end
  if not rule.unlimited and rule.burst > 0 then
    local left = level(s, rule) - 1
    local others = string.gsub(s.n or '', this .. ':%d+ ?', '')
    spent[key] = spent[key] + 1
    local newest = this .. ':' .. spent[key] .. ' ' .. others
    call('HSET', key, 't', string.format('%.17g', left), 'ta', text(now), 'n', string.sub(newest, 1, NEWEST * (#this + 5)))
    till = now + math.ceil((rule.burst - left) * rule.window / rule.limit)
  elseif not rule.unlimited then
    call('ZREMRANGEBYSCORE', window, '-inf', text(now - rule.window))
    call('ZADD', window, text(now), request)
    call('PEXPIRE', window, millis(rule.window))
    till = now + rule.window
  end
  lasts(key, s, till)
end

-- A message that passes at once ends the row of violations.
local function end_row(s, key, waits, id, paced)
  if s.v and not paced and not (id ~= '' and call('ZSCORE', waits, id)) then call('HDEL', key, 'v') end
end

-- Whether the messages that waited, up to the one that was published then, came faster than a rule admits them.
local function too_fast(waits, rule, published)
  local most = math.min(rule.burst > 0 and rule.burst or rule.limit, FAST)
  local span = floor(most * rule.window / rule.limit)
  return call('ZCOUNT', waits, '(' .. text(published - span), text(published)) > most
end

-- What was published before the last penalty is paid for; what only waits for its turn is a violation if it was published
-- too fast.
local function violates(s, waits, published, a)
  if s.p and published < tonumber(s.p) then return false end
  return not a.paced or too_fast(waits, a.rule, published)
end

local function violation(s, key, waits, name, id, published, a, request)
  local rule = a.rule
  if a.caused then return rule.after, a.caused end
  if rule.after == 0 then return 0, 0 end
  local keep = math.max(rule.history, rule.window)
  local v = tonumber(s.v or 0)
  local fresh = true
  if id ~= '' then
    fresh = not call('ZSCORE', waits, id)
    if fresh then
      call('ZREMRANGEBYRANK', waits, 0, -WAITS)
      call('ZADD', waits, text(published), id)
      call('PEXPIRE', waits, millis(keep))
    end
  end
  if fresh and violates(s, waits, published, a) then v = call('HINCRBY', key, 'v', 1) end
  if v < rule.after then
    lasts(key, s, now + keep)
    return v, 0
  end
  local l = s.f and tonumber(s.f) > now and tonumber(s.l or 0) or 0
  local length = math.min(rule.max, floor(rule.block * rule.factor ^ l))
  call('HDEL', key, 'v', 'a')
  s.b, s.f = text(now + length), text(now + length + rule.history)
  call('HSET', key, 'l', l + 1, 'b', s.b, 'f', s.f, 'p', text(now), 'y', 'penalty', 'q', request .. ' ' .. text(length))
  call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now))
  call('ZADD', KEYS[1], s.b, name)
  lasts(key, s, 0)
  return v, length
end

while i <= #ARGV do
  local request, id, published = ARGV[i], ARGV[i + 1], now - tonumber(ARGV[i + 2])
  local peek, items = ARGV[i + 3] == '1', tonumber(ARGV[i + 4])
  i = i + 5
  local passes, worst, reply, states, answers, rules_held = true, 0, {0, 0, 0, 0, 0, 0, 0}, {}, {}, {}
  for j = 1, items do
    local key, window, arg = KEYS[k + 3 * (j - 1)], KEYS[k + 3 * (j - 1) + 1], i + 4 * (j - 1)
    local s, packed = load_account(key), rule_named(KEYS[2], ARGV[arg + 2], ARGV[arg + 1])
    local a = judge(s, key, window, packed, request)
    if ARGV[arg + 3] == '1' then a = pace(window, a) end
    states[j], answers[j], rules_held[j] = s, a, packed
    if not a.ok then
      local after = a.after < 0 and math.huge or a.after
      if passes or after > worst then
        worst = after
        reply = {0, j - 1, a.blocked and 1 or 0, a.after, 0, 0, 0}
      end
      passes = false
    end
  end
  if passes then reply[1] = 1 end
  for j = 1, peek and 0 or items do
    local key, window, waits = KEYS[k + 3 * (j - 1)], KEYS[k + 3 * (j - 1) + 1], KEYS[k + 3 * (j - 1) + 2]
    local name, packed = ARGV[i + 4 * (j - 1)], rules_held[j]
    local s, a = states[j], answers[j]
    if s.r ~= packed then
      call('HSET', key, 'r', packed)
      s.r = packed
      if not s.x then lasts(key, s, now + 60000000) end
    end
    if passes then
      count(s, key, window, request, a)
      end_row(s, key, waits, id, ARGV[i + 4 * (j - 1) + 3] == '1')
    elseif not a.ok and not a.blocked then
      local v, length = violation(s, key, waits, name, id, published, a, request)
      if reply[2] == j - 1 then reply[5] = v end
      if length > 0 and (length > worst or reply[2] == j - 1) then
        worst = length
        reply[2], reply[4], reply[6] = j - 1, length, length
      end
    end
  end
  local refusing = answers[reply[2] + 1].rule
  if not passes and not refusing.unlimited then reply[7] = floor(refusing.window / refusing.limit) end
  for _, n in ipairs(reply) do replies[#replies + 1] = n end
  i, k = i + 4 * items, k + 3 * items
end
return replies
