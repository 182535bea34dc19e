-- head: what every script begins with. KEYS[1] is the topic hash of one partition; all other keys of the partition share
-- its hash tag, so that a cluster keeps them together, and their names are made from it.
local call, floor, match = redis.call, math.floor, string.match
local T = string.sub(KEYS[1], 1, -6)
local TOPIC, STREAM, GROUPS, META, IDS = T .. 'topic', T .. 'stream', T .. 'groups', T .. 'meta', T .. 'ids'
local LEFT, GRAVES, LATER, DELAYED, HELD = T .. 'left', T .. 'graves', T .. 'later', T .. 'delayed', T .. 'held'
local LATERS = T .. 'laters'
local EXPIRES, DEDUP, WINDOWS, KEPT, INVALID, RAW = T .. 'expires', T .. 'dedup', T .. 'windows', T .. 'kept', T .. 'invalid', T .. 'raw'
local clock = call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)
local soon = now + 1 -- a part of now's millisecond has passed: nothing may be early

-- Key of a group.
local function of(g, name) return T .. 'g:' .. g .. ':' .. name end

-- Counters are written at once, or gathered between gather and spend by scripts that count much.
local gathered
local function add(key, field, n)
  if not gathered then return call('HINCRBY', key, field, n) end
  local t = gathered[key]
  if not t then
    t = {}
    gathered[key] = t
  end
  t[field] = (t[field] or 0) + n
end
local function gather() gathered = {} end
local function spend()
  for key, t in pairs(gathered) do
    for field, n in pairs(t) do
      if n ~= 0 then call('HINCRBY', key, field, n) end
    end
  end
  gathered = nil
end
local function tally(g, field, n) add(of(g, 'group'), field, n) end
local function count(field, n) add(TOPIC, field, n) end

-- has tells whether a rarely used key exists, asking once; whoever creates one says so with made.
local existing = {}
local function has(key)
  if existing[key] == nil then existing[key] = call('EXISTS', key) == 1 end
  return existing[key]
end
local function made(key)
  existing[key] = true
  return key
end

local names
local function groups()
  if not names then
    names = call('HKEYS', GROUPS)
    table.sort(names)
  end
  return names
end

-- wake tells consumers of a group that found nothing that there may be something.
local awake = {}
local function wake(g)
  if awake[g] then return end
  awake[g] = true
  if call('HDEL', of(g, 'group'), 'hungry') == 1 then call('PUBLISH', TOPIC, g) end
end

-- Stream ids as two numbers, to compare them.
local function halves(id)
  local ms, seq = match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end
local function before(a, b)
  local am, as = halves(a)
  local bm, bs = halves(b)
  return am < bm or am == bm and as < bs
end

-- META has of each entry: place, time of publishing, bytes, when it expires (0 never), cause of the first delivery, id of the
-- message.
local function meta(id)
  local v = call('HGET', META, id)
  if not v then return nil end
  local place, pub, bytes, exp, cause, name = match(v, '^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  return {place = tonumber(place), pub = tonumber(pub), bytes = tonumber(bytes), exp = tonumber(exp), cause = tonumber(cause), name = name}
end

local function int(n) return string.format('%.0f', n) end
