-- ack_plain: the fast part of ack: what is plain is ended at once.
local n, tokens = tonumber(ARGV[4]), tonumber(ARGV[5])
local topic = call('HMGET', KEYS[1], 'partitions', 'keep', 'messages', 'bytes')
if topic[1] ~= ARGV[1] or call('HEXISTS', T .. 'groups', ARGV[2]) == 0 then return {'stale'} end
local base = 5 + 3 * tokens
local function token_of(t) return ARGV[3 * t + 3] end
local function count_of(t) return tonumber(ARGV[3 * t + 4]) end
local function valid_lease(t)
  local till = call('ZSCORE', G .. 'lease', token_of(t))
  return till and tonumber(till) > at
end
local none = {}
local function of_all(key) return call('HMGET', key, unpack(ARGV, base + 1, base + n)) end
local grave = call('EXISTS', T .. 'graves') == 1 and of_all(T .. 'graves') or none
local lefts = call('HLEN', T .. 'left') > 1 and of_all(T .. 'left') or none

-- What is written below must be ours: it is read before.
local noted, expiring, offers = call('HLEN', T .. 'meta'), call('ZCARD', T .. 'expires'), call('HLEN', G .. 'offer')
for _, name in ipairs({'busy', 'claims', 'flight'}) do call('HLEN', G .. name) end
call('HLEN', T .. 'ids')
local keep = tonumber(topic[2] or 0)
if keep > 0 then
  call('ZCARD', T .. 'kept')
  call('HLEN', G .. 'done')
end
if offers > 0 then
  for _, name in ipairs({'chain', 'lane0', 'lane1', 'lane2', 'lane3'}) do call('ZCARD', G .. name) end
end

-- Nearly always nothing but plain messages are to be ended, whose entries go at once: then no lists need to be made.
local bare = keep == 0 and noted < 2 and expiring == 0 and lefts == none
local function end_all()
  call('XACK', T .. 'stream', ARGV[2], unpack(ARGV, base + 1, base + n))
  call('HINCRBY', G .. 'group', ARGV[3], n)
  call('HSET', KEYS[1], 'messages', string.format('%.0f', topic[3] - n), 'bytes', string.format('%.0f', topic[4] - ARGV[base + 2 * n + 1]))
  call('XDEL', T .. 'stream', unpack(ARGV, base + 1, base + n))
  call('HDEL', T .. 'ids', unpack(ARGV, base + n + 1, base + 2 * n))
  return string.rep('k', n)
end

-- bulk returns what is left of each claim after these, if all are of claims that are noted whole, and held.
local function bulk()
  local rest = {}
  for t = 1, tokens do
    local letters = call('HGET', G .. 'bulk', token_of(t))
    if not letters or not valid_lease(t) then return nil end
    local some = 0
    for first, last in string.gmatch(ARGV[3 * t + 5], '(%d+)-(%d+)') do
      local length = last - first + 1
      if string.sub(letters, first, last) ~= string.rep('h', length) then return nil end
      letters, some = string.sub(letters, 1, first - 1) .. string.rep('-', length) .. string.sub(letters, last + 1), some + length
    end
    if some ~= count_of(t) then return nil end
    rest[t] = letters
  end
  return rest
end
local whole = bare and grave == none and bulk()
if whole then
  for t, letters in ipairs(whole) do
    if string.find(letters, 'h', 1, true) then
      call('HSET', G .. 'bulk', token_of(t), letters)
    else
      call('HDEL', G .. 'bulk', token_of(t), '@' .. token_of(t))
      call('ZREM', G .. 'lease', token_of(t))
    end
  end
  return {'ok', end_all()}
end
spread(G)

