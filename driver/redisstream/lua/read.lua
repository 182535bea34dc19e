-- read: entries that XREADGROUP gave to a group and that are not plain.

-- spoil moves an entry that cannot be decoded to the parse errors, whole.
local function spoil(id, fields, problem)
  call('HSET', RAW, id, cmsgpack.pack({problem, fields, int(now)}))
  call('ZADD', INVALID, sequence(), id)
  call('XDEL', STREAM, id)
end

-- adopt takes on an entry that somebody added without us, and tells whether it is a message.
local function adopt(g, id, fields)
  if not index(fields).body then
    spoil(id, fields, 'the entry has no field "body"')
    return false
  end
  local m = told_by(id, fields)
  note(id, m)
  call('HSETNX', IDS, m.name, id)
  local n = 0
  for _, other in ipairs(groups()) do
    if other == g or unread(other, id) then
      n = n + 1
      tally(other, 'received', 1)
    end
  end
  if n > 1 then call('HSET', LEFT, id, n) end
  count('published', 1)
  count('fanned', 1)
  count('messages', 1)
  count('bytes', m.bytes)
  return true
end

-- admit tells whether an entry that was read is a message for the group; if not, it is done with.
local function admit(g, id, fields)
  local ended = has(of(g, 'skip')) and call('SREM', of(g, 'skip'), id) == 1 -- and counted; it may be gone by now
  if not ended and not fields then -- another program has deleted it
    tally(g, 'cancelled', 1)
    ended = true
  end
  if not ended and fields[1] ~= 'v' and call('HEXISTS', META, id) == 0 then ended = not adopt(g, id, fields) end
  if ended then call('XACK', STREAM, g, id) end
  return not ended
end

-- Keys of messages that are put aside, in order, with the first of each.
local function queue() return {chain = {}, heads = {}, keys = {}} end
local function push(q, lane, id, key)
  local place_in = spot(id) .. '/' .. id
  local n = #q.chain
  q.chain[n + 1], q.chain[n + 2] = 0, range_of(key) .. place_in
  if q.heads[key] then return end
  q.heads[key] = lane .. place_in
  q.keys[#q.keys + 1] = key
end

-- line_up puts them behind the others of their keys, and offers the first of a key that is free.
local function line_up(g, q)
  local keys, heads = q.keys, q.heads
  if #keys == 0 then return end
  call('ZADD', of(g, 'chain'), unpack(q.chain))
  local busy, offered = call('HMGET', of(g, 'busy'), unpack(keys)), call('HMGET', of(g, 'offer'), unpack(keys))
  for i, key in ipairs(keys) do
    if offered[i] then -- they are behind it, unless it had joined the tail before they were read
      if offered[i] ~= '-' and string.sub(offered[i], 2) > string.sub(heads[key], 2) then front(g, key) end
    elseif busy[i] then
      call('HSET', of(g, 'offer'), key, '-')
    else
      call('HSET', of(g, 'offer'), key, heads[key])
      call('ZADD', of(g, 'lane' .. string.sub(heads[key], 1, 1)), 0, string.sub(heads[key], 2))
    end
  end
end

-- ahead puts entries that were read into the queues of the group: into lanes, or behind the others of their key.
local function ahead(g, entries)
  local lanes, q = {}, queue()
  for _, e in ipairs(entries) do
    local id, fields = e[1], e[2]
    if admit(g, id, fields) then
      local f = index(fields)
      local lane, key = lane_of(f), f.key or ''
      if key == '' then
        lanes[lane] = lanes[lane] or {}
        table.insert(lanes[lane], 0)
        table.insert(lanes[lane], spot(id) .. '/' .. id)
      else
        push(q, lane, id, key)
      end
    end
  end
  if #entries > 0 then call('HSET', of(g, 'group'), 'last', entries[#entries][1]) end
  for lane, members in pairs(lanes) do call('ZADD', of(g, 'lane' .. lane), unpack(members)) end
  line_up(g, q)
end

-- fetch reads up to n entries from the stream into the queues, so that priorities and keys can be seen. It returns how many they are, and the
-- bytes of their bodies, which come last.
local function fetch(g, n, consumer)
  local reply = call('XREADGROUP', 'GROUP', g, consumer, 'COUNT', n, 'STREAMS', STREAM, '>')
  if not reply then return 0, 0 end
  local bytes = 0
  for _, e in ipairs(reply[1][2]) do bytes = bytes + #e[2][#e[2]] end
  ahead(g, reply[1][2])
  return #reply[1][2], bytes
end

-- recover puts entries into the queues that an owner read and did not live to take: they are pending, and behind the last one taken.
local function recover(g)
  local last = read_so_far(g)
  local entries = {}
  for _, p in ipairs(call('XPENDING', STREAM, g, '(' .. last, '+', 1000)) do
    entries[#entries + 1] = {p[1], entry_of(p[1])}
  end
  ahead(g, entries)
  if #entries < 1000 then call('HDEL', of(g, 'group'), 'reading') end
end

-- pass reads n entries past a group: it does not get them.
local function pass(g, n)
  if n < 1 then return end
  local reply = call('XREADGROUP', 'GROUP', g, 'ferry', 'COUNT', n, 'NOACK', 'STREAMS', STREAM, '>')
  if not reply then return end -- they expired between being read and being taken
  local entries = reply[1][2]
  for _, e in ipairs(entries) do
    if admit(g, e[1], e[2]) then
      tally(g, 'cancelled', 1)
      drop(e[1])
    end
  end
  call('HSET', of(g, 'group'), 'last', entries[#entries][1])
end
