-- ack_each: what ack does with messages of which some are not plain, or have keys, one by one.
local hold = of_all(G .. 'flight')
local odd = call('EXISTS', G .. 'state') == 1 and of_all(G .. 'state') or none
local results, every, seen, spoilt, i = {}, true, {}, nil, 0
for t = 1, tokens do
  local token = token_of(t)
  local mark, valid = token .. '/', valid_lease(t)
  for _ = 1, count_of(t) do
    i = i + 1
    local v, id = hold[i], ARGV[base + i]
    if not v or v ~= mark and string.sub(v, 1, #token) ~= token or seen[id] then
      results[i] = 'l'
    elseif v ~= mark and string.sub(v, 1, #mark) ~= mark or odd[i] or grave[i] then
      results[i] = 's'
    elseif not valid then
      results[i] = 'l'
    else
      results[i], seen[id] = 'k', true
    end
    if results[i] == 'l' then hear(id, token) end
    every = every and results[i] == 'k'
    if results[i] ~= 'k' and v and not seen[id] then
      spoilt = spoilt or {}
      spoilt[string.match(v, '/(.*)$')] = true
    end
  end
end
if spoilt then -- none of a key may end here before another of it that does not
  for x = 1, n do
    local key = results[x] == 'k' and hold[x] and string.match(hold[x], '/(.*)$') or ''
    if key ~= '' and spoilt[key] then results[x] = 's' end
  end
end

local last = false -- whether no other group needs one of them any more: then it goes, and others may have noted something of it
for x = 1, lefts ~= none and n or 0 do last = last or results[x] == 'k' and (tonumber(lefts[x] or 1) or 1) < 2 end
local others = last and call('HKEYS', T .. 'groups') or none
for _, other in ipairs(others) do call('SCARD', T .. 'g:' .. other .. ':skip') end

local keys, freed, listed = {}, {}, not (bare and every) -- else no lists need to be made
local ended, gone, fewer, names, counted = {}, {}, {}, {}, {}
i = 0
for t = 1, tokens do
  local token, done = token_of(t), 0
  for _ = 1, count_of(t) do
    i = i + 1
    local id, key = ARGV[base + i], results[i] == 'k' and string.sub(hold[i], #token + 2)
    if key then done = done + 1 end
    if key and key ~= '' then
      if not freed[key] then keys[#keys + 1] = key end
      freed[key] = freed[key] and freed[key] .. ' ' .. id or id
    end
    if key and listed then
      ended[#ended + 1] = id
      local need = lefts[i] and tonumber(lefts[i]) or 1
      if need > 1 then
        fewer[#fewer + 1] = id
        fewer[#fewer + 1] = need - 1
      else
        gone[#gone + 1] = id
        names[#names + 1] = ARGV[base + n + i]
        counted[i] = true
      end
    end
  end
  if done > 0 and call('HINCRBY', G .. 'claims', '#' .. token, -done) <= 0 then
    call('HDEL', G .. 'claims', token, '#' .. token)
    call('ZREM', G .. 'lease', token)
  end
end
if not listed then
  call('HDEL', G .. 'flight', unpack(ARGV, base + 1, base + n))
  end_all()
elseif #ended > 0 then
  call('HDEL', G .. 'flight', unpack(ended))
  call('XACK', T .. 'stream', ARGV[2], unpack(ended))
  call('HINCRBY', G .. 'group', ARGV[3], #ended)
end
if keep > 0 and #ended > 0 then -- how they were settled, as finish notes it
  local notes, x = {}, 0
  for took in string.gmatch(ARGV[base + 2 * n + 3], '%d+') do
    x = x + 1
    if results[x] == 'k' then
      notes[#notes + 1] = ARGV[base + x]
      notes[#notes + 1] = string.format('%.0f', at) .. ' ' .. took .. ' ' .. ARGV[base + 2 * n + 4]
    end
  end
  call('HSET', G .. 'done', unpack(notes))
end
if #fewer > 0 then call('HSET', T .. 'left', unpack(fewer)) end
if #gone > 0 then
  local bytes = tonumber(ARGV[base + 2 * n + 1])
  if #gone < n then
    local x = 0
    bytes = 0
    for size in string.gmatch(ARGV[base + 2 * n + 2], '%d+') do
      x = x + 1
      if counted[x] then bytes = bytes + size end
    end
  end
  call('HSET', KEYS[1], 'messages', string.format('%.0f', topic[3] - #gone), 'bytes', string.format('%.0f', topic[4] - bytes))
  if lefts ~= none then call('HDEL', T .. 'left', unpack(gone)) end
  if expiring > 0 then call('ZREM', T .. 'expires', unpack(gone)) end
  if keep > 0 then
    local kept = {}
    for x, id in ipairs(gone) do kept[2 * x - 1], kept[2 * x] = at + keep, id end
    call('ZADD', T .. 'kept', unpack(kept))
    local due = call('HGET', KEYS[1], 'next')
    if not due or at + keep < (tonumber(due) or 0) then call('HSET', KEYS[1], 'next', string.format('%.0f', at + keep)) end
  else
    call('XDEL', T .. 'stream', unpack(gone))
    local ours = names
    if noted > 1 then -- an entry of another program may have the id of one of ours
      local index = call('HMGET', T .. 'ids', unpack(names))
      ours = {}
      for x, id in ipairs(gone) do
        if index[x] == id then ours[#ours + 1] = names[x] end
      end
      call('HDEL', T .. 'meta', unpack(gone))
    end
    if #ours > 0 then call('HDEL', T .. 'ids', unpack(ours)) end
    for _, other in ipairs(others) do -- as unskip does
      local skip = T .. 'g:' .. other .. ':skip'
      for _, id in ipairs(call('EXISTS', skip) == 1 and gone or none) do
        if not call('XPENDING', T .. 'stream', other, id, id, 1)[1] then call('SREM', skip, id) end
      end
    end
  end
end
