-- claiming: leases messages to one subscription, when there is one lane and nothing has expired, failed or been deleted.
-- ARGV: 1 shards, 2 token of the lease, 3 how many, 4 lease in ms, 5 most of one key, 6 instance, 7 to 10 how far one claim
--   moves each lane (7 is "" for strict priority), 11 for how many messages the bodies are
--   wanted at once: for more the caller asks without a script.
local o = FIRST
local token, most, run, instance = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5]), ARGV[6]
local NORMAL = 1 -- the lane of nearly all
local lane, back = KEYS[o + LANE + NORMAL], KEYS[o + BACK + NORMAL]
local topic, group, again

-- find_out reads what every claim must know, and returns whether topic and group are those that the caller means.
local function find_out()
  topic = call('HMGET', TOPIC, 'shards', 'paused')
  group = call('HMGET', KEYS[o + GROUP], 'i', 'paused')
  again = call('HGET', KEYS[o + LEASE], token)
  return topic[1] == ARGV[1] and group[1]
end

local function next_timer() return call('ZRANGE', KEYS[o + TIMER], 0, 0, 'WITHSCORES')[2] or '' end

-- taken takes up to n items off a lane, in the order of their places, or returns nil. Those in back stand there, with their places as scores,
-- because they came back, or their keys became free when younger ones were at the tail already.
local lists_only = {} -- lanes of which nothing is in back
local function taken(of, n)
  local list, set = KEYS[o + LANE + of], KEYS[o + BACK + of]
  local old = lists_only[of] and {} or call('ZRANGE', set, 0, n - 1, 'WITHSCORES')
  lists_only[of] = #old == 0
  if #old == 0 then return call('LPOP', list, n) or nil end
  local fresh, items, i, j = call('LRANGE', list, 0, n - 1), {}, 0, 0
  local place = fresh[1] and place_of(fresh[1])
  while #items < n do
    local first = tonumber(old[2 * i + 2])
    if not first and not place then break end
    if not place or first and first < place then
      i = i + 1
      items[#items + 1] = old[2 * i - 1]
    else
      j = j + 1
      items[#items + 1] = fresh[j]
      place = fresh[j + 1] and place_of(fresh[j + 1])
    end
  end
  if i > 0 then call('ZREMRANGEBYRANK', set, 0, i - 1) end
  if j > 0 then call('LPOP', list, j) end
  return items
end

-- runs_of takes items off the lane, and of each key as many more as the run allows.
local function runs_of()
  local picked, chains, unlinked = {}, {}, {}
  while #picked < most do
    local items = taken(NORMAL, run > 1 and math.min(most - #picked, 16) or most - #picked)
    if not items then break end
    local keys, at, seqs = {}, {}, {}
    for i = 1, #items do
      local key = key_of(items[i])
      seqs[i] = seq_of(items[i])
      if key then
        keys[#keys + 1] = key
        at[i] = #keys
      end
    end
    local known = #keys > 0 and call('HMGET', KEYS[o + CHAIN], unpack(keys))
    local following = #keys > 0 and call('HMGET', KEYS[o + NEXT], unpack(seqs))
    local i = 0
    while i < #items and #picked < most do
      i = i + 1
      picked[#picked + 1] = items[i]
      if at[i] then
        local held, seq, item = 1, seqs[i], following[i]
        local last = known[at[i]] and match(known[at[i]], '^%d+ %d (%d+)') or seq
        if item then unlinked[#unlinked + 1] = seq end
        while item and held < run and #picked < most do
          picked[#picked + 1] = item
          held, seq = held + 1, seq_of(item)
          item = call('HGET', KEYS[o + NEXT], seq)
          if item then unlinked[#unlinked + 1] = seq end
        end
        chains[#chains + 1] = keys[at[i]]
        chains[#chains + 1] = held .. ' 0 ' .. last .. ' ' .. (item or '')
      end
    end
    if i < #items then -- there is no room for the rest
      local rest = {}
      for j = #items, i + 1, -1 do rest[#rest + 1] = items[j] end
      call('LPUSH', lane, unpack(rest))
    end
  end
  if #chains > 0 then call('HSET', KEYS[o + CHAIN], unpack(chains)) end
  if #unlinked > 0 then call('HDEL', KEYS[o + NEXT], unpack(unlinked)) end
  return #picked > 0 and picked
end

-- quick_claim returns what claim does, or nil when it is not as simple as that: then nothing was changed.
local function quick_claim()
  if again or topic[2] == '1' or group[2] == '1' or most < 1
    or call('EXISTS', EXPIRES, KEYS[o + LANE], KEYS[o + GONE], KEYS[o + STATE], KEYS[o + BACK + 2], KEYS[o + BACK + 3],
      unpack(KEYS, o + LANE + 2, o + BACK)) > 0 then return nil end
  local first, items = next_timer(), nil
  if first ~= '' and tonumber(first) <= now then return nil end
  call('HLEN', BODIES) -- this and what follows fails, before the first write, if it is not ours, see types
  call('ZCARD', back)
  if call('HLEN', KEYS[o + CHAIN]) > 0 then
    call('HLEN', KEYS[o + NEXT])
    call('LLEN', lane)
    items = runs_of()
  else
    items = taken(NORMAL, most)
  end
  if not items then return {'ok', now .. '', first, '', {}, {}, {}} end
  local record, bodies, till = instance .. '\n' .. table.concat(items, '\n'), {}, soon + ARGV[4]
  call('HSET', KEYS[o + LEASE], token, record)
  call('ZADD', KEYS[o + TIMER], till, 'L' .. token)
  call('HINCRBY', KEYS[o + GROUP], 'inflight', #items)
  if #items <= tonumber(ARGV[11]) then
    for i = 1, #items do items[i] = seq_of(items[i]) end
    bodies = call('HMGET', BODIES, unpack(items))
  end
  return {'ok', now .. '', first == '' and till .. '' or first, record, {}, bodies, {}}
end
