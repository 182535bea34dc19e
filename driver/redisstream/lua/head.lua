-- head: what every script but the fastest begins with. KEYS[1] is the topic hash of one partition; all other keys of the partition
-- share its hash tag, so that a cluster keeps them together, and their names are made from it.
local call, floor, match = redis.call, math.floor, string.match
local T = string.sub(KEYS[1], 1, -6)
local TOPIC, STREAM, GROUPS, META, IDS = T .. 'topic', T .. 'stream', T .. 'groups', T .. 'meta', T .. 'ids'
local LEFT, GRAVES, LATER, DELAYED, HELD = T .. 'left', T .. 'graves', T .. 'later', T .. 'delayed', T .. 'held'
local LATERS = T .. 'laters'
local EXPIRES, DEDUP, WINDOWS, KEPT, INVALID, RAW = T .. 'expires', T .. 'dedup', T .. 'windows', T .. 'kept', T .. 'invalid', T .. 'raw'
local clock = call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)
local soon = now + 1 -- a part of now's millisecond has passed: nothing may be early

local function int(n) return string.format('%.0f', n) end

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

-- Hashes that are looked up for many messages at once have a field '' whose value is too long for a list pack: a small hash would be
-- searched from its begin for every field. size does not count it.
local function size(key) return call('HLEN', key) - call('HEXISTS', key, '') end

-- unpacked reads what we have packed, or tells nil of nothing, and of what is no table: another program may have written it.
local function unpacked(v)
  local fine, x = pcall(cmsgpack.unpack, v)
  return fine and type(x) == 'table' and x or nil
end

-- timer adds a member that is due at a time. 'next' of the topic is no later than whatever is due first.
local soonest
local function timer(key, at, member)
  call('ZADD', made(key), at, member)
  if not soonest then soonest = tonumber(call('HGET', TOPIC, 'next') or 1e15) or 0 end
  if tonumber(at) < soonest then
    soonest = tonumber(at)
    call('HSET', TOPIC, 'next', int(soonest))
  end
end

local names
local function groups()
  if not names then
    names = call('HKEYS', GROUPS)
    table.sort(names)
  end
  return names
end

-- wake tells consumers of a group that found too little that there may be more.
local awake = {}
local function wake(g)
  if awake[g] then return end
  awake[g] = true
  if call('HDEL', of(g, 'group'), 'hungry') == 1 then call('PUBLISH', TOPIC, g) end
end

-- valid tells whether a text is the id of an entry.
local function valid(id) return match(id, '^%d+%-%d+$') end

-- Stream ids as two numbers, to compare them; what is none is before all.
local function halves(id)
  local ms, seq = match(id, '^(%d+)-(%d+)$')
  return tonumber(ms or 0), tonumber(seq or 0)
end
local function before(a, b)
  local am, as = halves(a)
  local bm, bs = halves(b)
  return am < bm or am == bm and as < bs
end

-- Places of messages in a lane or a key are texts that sort: the id of an entry, and a number for what joins the tail behind it.
local ZEROS = '00000000000000'
local function spot(id, tail)
  local ms, seq = match(valid(id) or '0-0', '^(%d+)-(%d+)$')
  local n = tail and int(tail) or '0'
  return string.sub(ZEROS, #ms + 1) .. ms .. string.sub(ZEROS, #seq + 3) .. seq .. string.sub(ZEROS, #n + 5) .. n
end
local SPOT = 36

local function sequence() return call('HINCRBY', TOPIC, 'seq', 1) end

-- place returns a place behind everything that was published so far.
local function place() return spot(call('HGET', TOPIC, 'last') or '0-0', sequence()) end

local function index(fields)
  local f = {}
  for i = 1, #fields, 2 do f[fields[i]] = fields[i + 1] end
  return f
end

-- newest is the last entry that there was, and delivered the last one that anybody of a group has read.
local function newest() return index(call('XINFO', 'STREAM', STREAM))['last-generated-id'] end
local function delivered(g)
  for _, x in ipairs(call('XINFO', 'GROUPS', STREAM)) do
    local f = index(x)
    if f.name == g then return f['last-delivered-id'] end
  end
  return newest()
end

local function entry_of(id)
  local e = valid(id) and call('XRANGE', STREAM, id, id)[1]
  return e and e[2] or nil
end

-- weight is how many bytes an entry has.
local function weight(fields)
  local bytes = 0
  for _, x in ipairs(fields) do bytes = bytes + #x end
  return bytes
end

-- told_by is what an entry tells of itself, as meta says it.
local function told_by(id, fields) return {pub = (halves(id)), bytes = weight(fields), exp = 0, cause = 0, name = index(fields).id or id} end

-- meta is what is known of an entry: pub time of publishing, bytes, exp when it expires (0 never), cause of the first delivery, since when
-- it is due (of what was delayed; else nil), name (id of the message). META has it only where the entry itself does not tell: of what was delayed, expires, is another program's, or is
-- not in the stream any more.
local function meta(id)
  local v = call('HGET', META, id)
  local pub, bytes, exp, cause, since, name = match(v or '', '^(%d+) (%d+) (%d+) (%d+)@?(%d*) (.*)$')
  if pub then
    return {pub = tonumber(pub), bytes = tonumber(bytes), exp = tonumber(exp), cause = tonumber(cause), since = tonumber(since), name = name}
  end
  local fields = entry_of(id)
  return fields and told_by(id, fields)
end
local function note(id, m)
  call('HSET', META, id, int(m.pub) .. ' ' .. m.bytes .. ' ' .. int(m.exp) .. ' ' .. m.cause .. (m.since and '@' .. int(m.since) or '') .. ' ' .. m.name)
end
