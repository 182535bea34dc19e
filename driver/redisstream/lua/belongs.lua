-- belongs: looks at every structure of a partition, whether what is in it belongs there. What belongs to no message is removed; what tells more
-- of one than is left elsewhere is what the rest is made from again.
local fix, problems, found = ARGV[3] == '1', {}, {}
local function count_of(g, what, n) found[g .. ' ' .. what] = (found[g .. ' ' .. what] or 0) + n end
local function problem(kind, g, id, text, mend)
  if fix and mend then mend() end
  problems[#problems + 1] = {kind, g, id, text, fix and mend and '1' or ''}
end
-- expect notes a problem where something is not as it should be.
local function expect(fine, ...)
  if not fine then problem(...) end
end
local function mark(key)
  expect(call('HEXISTS', key, '') == 1, 'shape', '', '', 'a hash lacks the field that says it is none of a few',
    function() call('HSET', key, '', string.rep('-', 65)) end)
end

-- lists tells whether a field of a hash has an id among others: that of a token in claims, of a key in busy.
local function lists(hash, field, id)
  for x in string.gmatch(call('HGET', hash, field) or '', '%S+') do
    if x == id then return true end
  end
  return false
end

local OF_ALL = {'later', 'laters', 'delayed', 'held', 'ids', 'meta', 'left', 'graves', 'expires', 'kept', 'windows', 'dedup', 'invalid', 'raw'}
local OF_EACH = {'dead', 'off', 'state', 'flight', 'claims', 'lease', 'busy', 'chain', 'offer', 'lane0', 'lane1', 'lane2', 'lane3', 'wait', 'record', 'history', 'edited', 'done', 'skip'}
-- A look at a member tells whether it does not belong there; what else is wrong with it is noted.
local look_at = {}

-- Of a topic: member, value.
function look_at.later(name, v)
  local m = unpacked(v)
  if not m then
    return problem('lost', '', name, 'delayed or held, and cannot be read', function()
      call('HDEL', LATER, name)
      call('HDEL', IDS, name)
    end)
  end
  count_of('', 'messages', 1)
  count_of('', 'bytes', m.bytes)
  -- Nothing is ever early, so it is held.
  expect(call('ZSCORE', DELAYED, m.member) or call('ZSCORE', HELD, m.member), 'orphan', '', name, 'neither delayed nor held: it is held now',
    function() call('ZADD', HELD, now, m.member) end)
  expect(call('ZSCORE', LATERS, name), 'orphan', '', name, 'delayed or held, but not listed',
    function() call('ZADD', LATERS, tonumber(string.sub(m.member, 1, 16)), name) end)
  expect(call('HGET', IDS, name) == 'later', 'index', '', name, 'not found by its id', function() call('HSET', IDS, name, 'later') end)
  expect(m.exp == 0 or call('ZSCORE', EXPIRES, 'L' .. name), 'orphan', '', name, 'expires at no time',
    function() timer(EXPIRES, m.exp, 'L' .. name) end)
end
function look_at.laters(name)
  return call('HEXISTS', LATER, name) == 0
end
function look_at.delayed(mem)
  local m = unpacked(call('HGET', LATER, string.sub(mem, 17)))
  return not m or m.member ~= mem
end
look_at.held = look_at.delayed
function look_at.ids(name, where)
  local m = where ~= 'later' and valid(where) and meta(where)
  return not (where == 'later' and call('HEXISTS', LATER, name) == 1 or m and m.name == name)
end
local function known(id)
  if not valid(id) then return false end
  if entry_of(id) then return true end
  for _, g in ipairs(groups()) do
    if call('HEXISTS', of(g, 'state'), id) == 1 then return true end
  end
  return false
end
function look_at.meta(id, v)
  if not match(v, '^%d+ %d+ %d+ %d+@?%d* .*$') then return problem('shape', '', id, 'what is noted of it cannot be read', function() call('HDEL', META, id) end) end
  return not known(id)
end
function look_at.left(id, n)
  if not tonumber(n) then return problem('count', '', id, 'the number of groups that need it is none', function() call('HDEL', LEFT, id) end) end
  return not known(id)
end
function look_at.graves(id, n)
  local dead = 0
  for _, g in ipairs(groups()) do
    local s = valid(id) and state(g, id)
    if s and s.s == 'D' then dead = dead + 1 end
  end
  if dead == tonumber(n) then return end
  problem('count', '', id, 'dead in ' .. dead .. ' groups, ' .. n .. ' counted', function()
    if dead > 0 then call('HSET', GRAVES, id, dead) else call('HDEL', GRAVES, id) end
  end)
end
function look_at.expires(id)
  if string.sub(id, 1, 1) == 'L' then return call('HEXISTS', LATER, string.sub(id, 2)) == 0 end
  return not valid(id) or left(id) == 0
end
function look_at.kept(id)
  return not entry_of(id)
end
function look_at.windows(id)
  return call('HEXISTS', DEDUP, id) == 0
end
function look_at.dedup(id)
  if not call('ZSCORE', WINDOWS, id) then problem('orphan', '', id, 'a dedup id without an end', function() timer(WINDOWS, now + 60000, id) end) end
end
function look_at.invalid(id)
  return call('HEXISTS', RAW, id) == 0
end
function look_at.raw(id, v)
  if not unpacked(v) then return true end
  if not call('ZSCORE', INVALID, id) then problem('orphan', '', id, 'not among the parse errors', function() call('ZADD', INVALID, sequence(), id) end) end
end

-- Of a group: member, value, group.
local function edited_of(g, id) return unpacked(call('HGET', of(g, 'edited'), id)) end
local function remake(g, id, fields)
  if not meta(id) then note(id, told_by(id, fields)) end
  return fresh(id, fields)
end
function look_at.dead(id, _, g)
  local s = valid(id) and state(g, id)
  if s and s.s == 'D' then
    if (call('HGET', GRAVES, id) or '0') == '0' then problem('count', '', id, 'dead, and not counted', function() call('HINCRBY', made(GRAVES), id, 1) end) end
    return
  end
  local fields = valid(id) and not s and edited_of(g, id)
  if not fields then return true end
  problem('orphan', g, id, 'a dead letter without a record', function()
    s = remake(g, id, fields)
    s.s = 'D'
    save(g, id, s)
  end)
end
function look_at.done(id, _, g)
  return not entry_of(id)
end
function look_at.off(id, _, g)
  local s = valid(id) and state(g, id)
  if s and s.s ~= 'D' then return end
  local fields = valid(id) and not s and edited_of(g, id)
  if not fields then return true end
  problem('orphan', g, id, 'replayed, and in no queue', function()
    s = remake(g, id, fields)
    s.c, s.p, s.n = REPLAY, place(), now
    enter(g, id, s)
  end)
end
function look_at.state(id, v, g)
  local kept = record_of(v)
  if not kept then return true end
  local fields = valid(id) and content(g, id)
  if not fields then
    return problem('lost', g, id, 'its content is gone', function()
      if not valid(id) then return call('HDEL', of(g, 'state'), id) end
      if kept.s == 'D' then unbury(g, id) else take_out(g, id, kept) end
      forget(g, id)
      if has(of(g, 'off')) then call('ZREM', of(g, 'off'), id) end
      tally(g, 'cancelled', 1)
    end)
  end
  if not meta(id) then problem('orphan', g, id, 'nothing is noted of it', function() remake(g, id, fields) end) end
end
function look_at.flight(id, hold, g)
  local s = valid(id) and state(g, id)
  if s and s.s == 'I' then return end
  problem('ghost', g, id, 'in flight, where it does not belong', function()
    if s then unhold(g, id, s) else call('HDEL', of(g, 'flight'), id) end
    if s and s.k ~= '' then front(g, s.k) end
  end)
end
function look_at.claims(field, v, g)
  local token = match(field, '^#(.*)$')
  if token then return call('HEXISTS', of(g, 'claims'), token) == 0 end
  local n = 0
  for id in string.gmatch(v, '%S+') do
    if string.sub(call('HGET', of(g, 'flight'), id) or '', 1, #field + 1) == field .. '/' then n = n + 1 end
  end
  if n > 0 and call('HGET', of(g, 'claims'), '#' .. field) == n .. '' then return end
  problem('count', g, field, 'a claim of ' .. n .. ' messages, and another number counted', function()
    if n > 0 then return call('HSET', of(g, 'claims'), '#' .. field, n) end
    call('HDEL', of(g, 'claims'), field, '#' .. field)
    call('ZREM', of(g, 'lease'), field)
  end)
end
function look_at.lease(mem, _, g)
  local id = match(mem, '^%*(.*)$')
  local s = id and valid(id) and state(g, id)
  return id and not (s and s.s == 'I' and s.alone) or not id and call('HEXISTS', of(g, 'claims'), mem) == 0
end
function look_at.busy(key, v, g)
  local rest, wrong = {}, false
  for id in string.gmatch(v, '%S+') do
    if match(call('HGET', of(g, 'flight'), id) or '', '^[^/]*/(.*)$') == key then rest[#rest + 1] = id else wrong = true end
  end
  if not wrong and #rest > 0 then return end
  problem('ghost', g, key, 'a key is held for what is not in flight', function()
    if #rest > 0 then call('HSET', of(g, 'busy'), key, table.concat(rest, ' ')) else call('HDEL', of(g, 'busy'), key) end
    front(g, key)
  end)
end
function look_at.chain(mem, _, g)
  local id = match(mem, '/(%d+%-%d+)$')
  local s = id and state(g, id)
  if not s or s.k == '' or member(s, id) ~= mem or s.s ~= 'R' and not (s.s == 'W' and strict(g, s) and not s.tail) then return true end
  if call('HEXISTS', of(g, 'offer'), s.k) == 0 then problem('orphan', g, id, 'its key is not offered', function() front(g, s.k) end) end
end
function look_at.offer(key, was, g)
  local head = first_of(g, key, 1)[1]
  local s = head and state(g, id_in(head))
  local want = s and (s.s == 'R' and call('HEXISTS', of(g, 'busy'), key) == 0 and s.l .. head or '-')
  if was == want and (want == '-' or call('ZSCORE', of(g, 'lane' .. string.sub(want, 1, 1)), string.sub(want, 2))) then return end
  problem('orphan', g, key, 'another message of a key is offered than its first', function()
    local lane = match(was, '^([0-3])')
    if lane then call('ZREM', of(g, 'lane' .. lane), string.sub(was, 2)) end
    call('HDEL', of(g, 'offer'), key)
    front(g, key)
  end)
end
for lane = 0, 3 do
  look_at['lane' .. lane] = function(mem, _, g)
    local id = id_in(mem)
    local s = valid(id) and state(g, id)
    local right = s and s.s == 'R' and s.l == lane and seat(s, id) == mem
    return not right or s.k ~= '' and call('HGET', of(g, 'offer'), s.k) ~= lane .. mem
  end
end
function look_at.wait(id, _, g)
  local s = valid(id) and state(g, id)
  return not s or s.s ~= 'W'
end
function look_at.record(id, v, g)
  return not unpacked(v) or not call('ZSCORE', of(g, 'dead'), id)
end
function look_at.history(id, v, g)
  return not unpacked(v) or call('HEXISTS', of(g, 'state'), id) == 0
end
look_at.edited = look_at.history
function look_at.skip(id, _, g)
  return not valid(id) or not entry_of(id) and not call('XPENDING', STREAM, g, id, id, 1)[1]
end

-- How each type is gone through, how many elements a member is told by, and what removes one.
local SCANS = {hash = {'HSCAN', 2, 'HDEL'}, zset = {'ZSCAN', 2, 'ZREM'}, set = {'SSCAN', 1, 'SREM'}}

-- inspect looks at some members from one place in the list of all structures on, and returns the next place, or nil at the end.
local function inspect(n, scan)
  local all = {}
  for _, name in ipairs(OF_ALL) do all[#all + 1] = {name, ''} end
  for _, g in ipairs(groups()) do
    for _, name in ipairs(OF_EACH) do all[#all + 1] = {name, g} end
  end
  if n == 1 and scan == '0' then
    for _, key in ipairs({META, IDS, LEFT}) do mark(key) end
    for _, g in ipairs(groups()) do
      mark(of(g, 'flight'))
      mark(of(g, 'busy'))
    end
  end
  local seen = 0
  while n <= #all and seen < STEP do
    local name, g = all[n][1], all[n][2]
    local key = g == '' and T .. name or of(g, name)
    local how = SCANS[call('TYPE', key).ok]
    local page = how and call(how[1], key, scan, 'COUNT', STEP) or {'0', {}}
    for i = 1, #page[2], how and how[2] or 1 do
      local mem = page[2][i]
      if mem ~= '' and look_at[name](mem, page[2][i + 1], g) then
        problem('ghost', g, mem, 'in ' .. name .. ', where it does not belong', function() call(how[3], key, mem) end)
      end
      seen = seen + 1
    end
    scan = page[1]
    if scan == '0' then n = n + 1 end
  end
  if n <= #all then return n, scan end
  local first, said = first_due(), call('HGET', TOPIC, 'next')
  if first and (not said or tonumber(said) > first) then
    problem('timer', '', '', 'what is due first is not looked for in time', function() call('HSET', TOPIC, 'next', int(first)) end)
  end
  return nil
end
