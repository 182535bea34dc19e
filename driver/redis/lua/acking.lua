-- acking: acknowledges messages, many at once. Each lease must be exactly as the caller believes it to be.
-- From ARGV[at + 1] on: 1 id of the request, 2 how many messages, 3 their bytes, negative, 4 the bytes of each, with spaces between,
--   5 how many leases, 6 how many messages have keys, 7 how many messages, negative, 8 segments and how many messages of each,
--   negative, with spaces between; then for each lease token, record as it is, record as it will be or ""; then the sequence
--   numbers, the ids, the keys; then those ids which the producer chose, each with its sequence number.

-- ackable looks, and changes nothing. It returns "ok" when this was done before, "slow" when something is not as believed, or nil.
local rare
local function ackable(at)
  local o = FIRST
  if answered(ARGV[at + 1]) then return 'ok' end
  local leases, keyed = tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  if keyed > 0 and call('EXISTS', KEYS[o + GONE], KEYS[o + STATE]) > 0 then return 'slow' end
  for i = at + 9, at + 6 + 3 * leases, 3 do
    local till = call('ZSCORE', KEYS[o + TIMER], 'L' .. ARGV[i])
    if not till or tonumber(till) <= now or call('HGET', KEYS[o + LEASE], ARGV[i]) ~= ARGV[i + 1] then return 'slow' end
  end
  rare = call('EXISTS', KEYS[o + STATE], KEYS[o + LOSSES], LIVE, GRAVES, EXPIRES) > 0
  -- What acknowledge writes and has not been read yet must be ours, see types.
  call('HLEN', BODIES)
  call('HLEN', IDS)
  call('HLEN', SIZES)
  call('ZCARD', SEGMENTS)
  call('HLEN', TOPIC)
  call('HLEN', KEYS[o + GROUP])
  if rare then
    for _, k in ipairs({KEYS[o + STATE], KEYS[o + HISTORY], KEYS[o + EDITED], KEYS[o + LOSSES], LIVE, GRAVES}) do call('HLEN', k) end
    call('ZCARD', EXPIRES)
  end
  if keyed > 0 then
    call('HLEN', KEYS[o + CHAIN])
    for lane = 0, 3 do
      call('LLEN', KEYS[o + LANE + lane])
      call('ZCARD', KEYS[o + BACK + lane])
    end
  end
  if at + 8 + 3 * leases + 2 * ARGV[at + 2] + keyed < #ARGV then
    call('HLEN', KEYS[MEMORY])
    call('HLEN', KEYS[MEMORY + 1])
  end
end

-- let_go lets the next message of each key go of which nothing is held any more; ARGV[from] to ARGV[to] are the keys. It returns whether a
-- lane that was empty is not any more.
local function let_go(o, from, to)
  local held, keys = {}, {}
  for i = from, to do
    local key = ARGV[i]
    if not held[key] then
      keys[#keys + 1] = key
      held[key] = 0
    end
    held[key] = held[key] + 1
  end
  local found, kept, ended, free = call('HMGET', KEYS[o + CHAIN], unpack(keys)), {}, {}, {}
  for i, key in ipairs(keys) do
    if found[i] then
      local holds, offered, last, first = match(found[i], '^(%d+) (%d) (%d+) (.*)$')
      holds = holds - held[key]
      if holds <= 0 and first == '' then
        ended[#ended + 1] = key
      else
        if holds <= 0 then
          holds, offered = 0, '1'
          free[#free + 1] = first
        end
        kept[#kept + 1] = key
        kept[#kept + 1] = holds .. ' ' .. offered .. ' ' .. last .. ' ' .. first
      end
    end
  end
  if #ended > 0 then call('HDEL', KEYS[o + CHAIN], unpack(ended)) end
  if #kept > 0 then call('HSET', KEYS[o + CHAIN], unpack(kept)) end
  local places, tails, woken = {}, {}, false
  for _, item in ipairs(free) do places[item] = place_of(item) end
  table.sort(free, function(a, b) return places[a] < places[b] end)
  for _, item in ipairs(free) do
    local lane = lane_of(item)
    if tails[lane] == nil then
      local last = call('LINDEX', KEYS[o + LANE + lane], -1)
      tails[lane] = {at = last and place_of(last), items = {}, older = {}}
    end
    -- Among different keys a little disorder is nothing but a different moment; so most go to the tail.
    local tail, place = tails[lane], places[item]
    if not tail.at or place + 1000 > tail.at then
      tail.items[#tail.items + 1] = item
    else
      tail.older[#tail.older + 1] = place
      tail.older[#tail.older + 1] = item
    end
  end
  for lane, tail in pairs(tails) do
    if #tail.items > 0 then call('RPUSH', KEYS[o + LANE + lane], unpack(tail.items)) end
    if #tail.older > 0 then call('ZADD', KEYS[o + BACK + lane], unpack(tail.older)) end
    woken = woken or not tail.at
  end
  return woken
end

-- others settles n messages, from ARGV[seqs] and ARGV[ids] on, of which other groups may still need some. It returns by how much the counts of
-- messages, of bytes and of each segment change.
local function others(o, at, n, seqs, ids, rest)
  local letter = call('HGET', KEYS[o + GROUP], 'i')
  local live = call('HMGET', LIVE, unpack(ARGV, seqs, seqs + n - 1))
  local graves = call('HMGET', GRAVES, unpack(ARGV, seqs, seqs + n - 1))
  local changed, gone, unknown, own, segments, messages, bytes, i = {}, {}, {}, {}, {}, 0, 0, 0
  for j = rest, #ARGV, 2 do own[ARGV[j + 1]] = ARGV[j] end
  for size in string.gmatch(ARGV[at + 4], '%d+') do
    local seq = ARGV[seqs + i]
    local left = ''
    if live[i + 1] then
      local where = find(live[i + 1], letter, 1, true)
      left = where and part(live[i + 1], 1, where - 1) .. part(live[i + 1], where + 1) or live[i + 1]
    end
    if left == '' then messages, bytes = messages - 1, bytes - size end
    if left ~= '' or graves[i + 1] then
      changed[#changed + 1] = seq
      changed[#changed + 1] = left
    else
      gone[#gone + 1] = seq
      unknown[#unknown + 1] = ARGV[ids + i]
      local segment = floor(seq / 1024)
      segments[segment] = (segments[segment] or 0) - 1
      if own[seq] then remember(own[seq], seq) end
    end
    i = i + 1
  end
  if #changed > 0 then call('HSET', LIVE, unpack(changed)) end
  if #gone > 0 then
    call('HDEL', BODIES, unpack(gone))
    call('HDEL', IDS, unpack(unknown))
    call('HDEL', LIVE, unpack(gone))
    if call('EXISTS', EXPIRES) == 1 then call('ZREM', EXPIRES, unpack(gone)) end
  end
  return messages, bytes, segments
end

-- acknowledge does what ackable has looked at. It returns whether a lane that was empty is not any more.
local function acknowledge(at)
  local o, n, leases, keyed = FIRST, tonumber(ARGV[at + 2]), tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  local seqs, messages, bytes, segments = at + 9 + 3 * leases, ARGV[at + 7], ARGV[at + 3], {}
  local ids = seqs + n
  local rest = ids + n + keyed
  for i = at + 9, at + 6 + 3 * leases, 3 do
    if ARGV[i + 2] == '' then
      call('HDEL', KEYS[o + LEASE], ARGV[i])
      call('ZREM', KEYS[o + TIMER], 'L' .. ARGV[i])
    else
      call('HSET', KEYS[o + LEASE], ARGV[i], ARGV[i + 2])
    end
  end
  if rare and call('EXISTS', KEYS[o + STATE], KEYS[o + LOSSES]) > 0 then
    for _, k in ipairs({STATE, HISTORY, EDITED, LOSSES}) do call('HDEL', KEYS[o + k], unpack(ARGV, seqs, seqs + n - 1)) end
  end
  if not rare or call('EXISTS', LIVE, GRAVES) == 0 then
    call('HDEL', BODIES, unpack(ARGV, seqs, seqs + n - 1))
    call('HDEL', IDS, unpack(ARGV, ids, ids + n - 1))
    if rare and call('EXISTS', EXPIRES) == 1 then call('ZREM', EXPIRES, unpack(ARGV, seqs, seqs + n - 1)) end
    for segment, m in string.gmatch(ARGV[at + 8], '(%d+) (%S+)') do segments[segment] = m end
    for i = rest, #ARGV, 2 do remember(ARGV[i], ARGV[i + 1]) end
  else
    messages, bytes, segments = others(o, at, n, seqs, ids, rest)
  end
  for segment, m in pairs(segments) do resize(segment, m) end
  if messages ~= 0 then
    call('HINCRBY', TOPIC, 'messages', messages)
    call('HINCRBY', TOPIC, 'bytes', bytes)
  end
  local woken = keyed > 0 and let_go(o, ids + n, rest - 1)
  call('HINCRBY', KEYS[o + GROUP], 'acked', ARGV[at + 2])
  call('HINCRBY', KEYS[o + GROUP], 'inflight', ARGV[at + 7])
  answer(ARGV[at + 1], {'ok'})
  return woken
end

-- wake_up announces that the group has something to claim that it had not.
local function wake_up() call('PUBLISH', TOPIC, call('HGET', KEYS[FIRST + GROUP], 'name')) end
