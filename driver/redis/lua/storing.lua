-- storing: stores messages of one topic shard in order, and makes those that are due ready for every group.
-- store_messages reads them from ARGV[at] on: the id of the request; flags (f: whatever the bounds say; a: all or none); the sequence
-- number of the undecodable entry that this replaces or ""; how many; kinds; then the ids; then the envelopes. Kinds is ""
-- when all are plain, or one byte for each: lane + 4 with key + 8 delayed + 16 with TTL + 32 with dedup id + 64 with an
-- id of the producer's own. What a kind announces follows behind the envelopes, in the order of the messages: key; delay
-- ("h" for held, "@ms" for a time, else ms); TTL in ms; dedup id and window in ms.
-- It returns {"ok", first sequence number} when all were stored, or {"mixed", one text for each}: "s" and the number of a stored one,
-- "d", the number, a space and the id of the first one for a duplicate, "m" or "b" when the bound of messages or bytes
-- is reached; or {"missing"} when the entry to be replaced is not there.
local function store_messages(at)
  local request, flags, replaces, n, kinds = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), ARGV[at + 4]
  local before = answered(request)
  if before then return before end
  if replaces ~= '' and not call('ZSCORE', INVALID, replaces) then return {'missing'} end

  local seq, messages, bytes = tonumber(known[7] or 0), tonumber(known[8] or 0), tonumber(known[9] or 0)
  local most, widest = tonumber(known[12] or 0), tonumber(known[13] or 0)
  if find(flags, 'f', 1, true) then most, widest = 0, 0 end
  local bounded = most > 0 or widest > 0

  at = at + 4 -- ids follow, then envelopes
  local existing_ids = call('HMGET', IDS, unpack(ARGV, at + 1, at + n))

  -- First find out what each message becomes; nothing is written.
  local texts, rest, refused, seen, windows = {}, at + 1 + 2 * n, false, {}, {}
  local bodies, index, items, delayed, held, pending, expiries, memories, dedups = {}, {}, {}, {}, {}, {}, {}, {}, {}
  local stamp, first, clean = '@' .. now, seq + 1, true
  for i = 1, n do
    local id, body = ARGV[at + i], ARGV[at + n + i]
    local kind = kinds == '' and 1 or string.byte(kinds, i)
    local lane, key, delay, ttl, dedup, window = kind % 4
    if kind ~= 1 then
      if floor(kind / 4) % 2 == 1 then key, rest = ARGV[rest], rest + 1 end
      if floor(kind / 8) % 2 == 1 then delay, rest = ARGV[rest], rest + 1 end
      if floor(kind / 16) % 2 == 1 then ttl, rest = ARGV[rest], rest + 1 end
      if floor(kind / 32) % 2 == 1 then dedup, window, rest = ARGV[rest], ARGV[rest + 1], rest + 2 end
    end
    local known_as = existing_ids[i] and seq_of(existing_ids[i]) or seen[id]
    if not known_as and kind >= 64 then known_as = recall(id) end
    local text
    if known_as then
      text = 'd' .. known_as .. ' '
    elseif dedup then
      local entry = windows[dedup] or call('HGET', DEDUP, dedup)
      local till, first_seq, first_id = nil, nil, nil
      if entry then till, first_seq, first_id = match(entry, '^(%d+) (%d+) (.*)$') end
      if till and tonumber(till) > now then text = 'd' .. first_seq .. ' ' .. first_id end
    end
    if not text and bounded then
      if most > 0 and messages + 1 > most then text = 'm' elseif widest > 0 and bytes + #body > widest then text = 'b' end
      if text then refused = true end
    end
    if text then
      texts[i], clean = text, false
    else
      seq, messages, bytes = seq + 1, messages + 1, bytes + #body
      local s = seq .. ''
      texts[i] = 's' .. s
      bodies[#bodies + 1] = s
      bodies[#bodies + 1] = body

      if kinds ~= '' then seen[id] = id ~= '' and s or nil end
      local item = lane .. s .. stamp
      if id ~= '' then
        index[#index + 1] = id
        index[#index + 1] = item
      end
      if key then item = item .. ':' .. key end
      if ttl then
        expiries[#expiries + 1] = soon + ttl
        expiries[#expiries + 1] = s
      end
      if dedup then
        windows[dedup] = (soon + window) .. ' ' .. s .. ' ' .. id
        dedups[#dedups + 1] = {dedup, soon + window, windows[dedup]}
      end
      local due = now
      if delay == 'h' then
        due = nil
      elseif delay then
        due = part(delay, 1, 1) == '@' and tonumber(part(delay, 2)) or soon + delay
      end
      if due and due <= now then
        items[#items + 1] = item
      else
        pending[#pending + 1] = s
        pending[#pending + 1] = item
        local set = due and delayed or held
        set[#set + 1] = due or s
        set[#set + 1] = s
        if due then timed(due) end
      end
    end
  end
  if refused and find(flags, 'a', 1, true) then
    for i = 1, n do if part(texts[i], 1, 1) == 's' then texts[i] = 'm' end end
    return {'mixed', texts}
  end

  -- Then write all of it.
  local stored = #bodies / 2
  if stored > 0 then
    call('HSET', TOPIC, 'seq', seq, 'messages', messages, 'bytes', bytes, 'published', (known[10] or 0) + stored,
      'fanned', (known[11] or 0) + #items)
    call('HSET', BODIES, unpack(bodies))
    if #index > 0 then call('HSET', IDS, unpack(index)) end
    for segment = floor(first / 1024), floor(seq / 1024) do
      local low, high = math.max(first, segment * 1024), math.min(seq, segment * 1024 + 1023)
      if call('HINCRBY', SIZES, segment, high - low + 1) == high - low + 1 then call('ZADD', SEGMENTS, segment, segment) end
    end
    for i = 1, #dedups do
      call('HSET', DEDUP, dedups[i][1], dedups[i][3])
      call('ZADD', WINDOWS, dedups[i][2], dedups[i][1])
    end
    if #pending > 0 then call('HSET', PENDING, unpack(pending)) end
    if nearest then
      local sooner = tonumber(call('ZRANGE', DELAYED, 0, 0, 'WITHSCORES')[2])
      if sooner and sooner <= nearest then nearest = nil end
    end
    if #delayed > 0 then call('ZADD', DELAYED, unpack(delayed)) end
    if #held > 0 then call('ZADD', HELD, unpack(held)) end
    if #expiries > 0 then
      local sooner = tonumber(call('ZRANGE', EXPIRES, 0, 0, 'WITHSCORES')[2])
      for i = 1, #expiries, 2 do
        if not sooner or expiries[i] < sooner then timed(expiries[i]) end
      end
      call('ZADD', EXPIRES, unpack(expiries))
    end
    if #items > 0 then fan_out(items, kinds ~= '') end
    if replaces ~= '' then unspoil(replaces) end
  end
  return answer(request, clean and {'ok', first .. ''} or {'mixed', texts})
end
