-- lease: plain messages are taken in flight under one token. Needs call, T and G.

-- The key of a message of ours: its fields end with key, its value, "body", the body.
local function key_of(fields)
  local n = #fields
  return fields[n - 3] == 'key' and fields[n - 2] or ''
end

-- begin_lease notes until when a token holds its messages.
local function begin_lease(token, ends)
  call('ZADD', G .. 'lease', ends, token)
  local due = call('HGET', KEYS[1], 'next')
  if not due or ends < (tonumber(due) or 0) then call('HSET', KEYS[1], 'next', string.format('%.0f', ends)) end
end

-- hold_all notes that messages are in flight under a token, one by one.
local function hold_all(flight, ids, token, ends)
  call('HSET', G .. 'flight', unpack(flight))
  call('HSET', G .. 'claims', token, table.concat(ids, ' '), '#' .. token, #ids)
  begin_lease(token, ends)
end

-- all_plain tells whether META has nothing. Else what is noted whole would be noted one by one when it is acknowledged.
local function all_plain() return call('HLEN', T .. 'meta') < 2 end

-- hold_whole notes that n messages without keys are, as spread reads it.
local function hold_whole(n, list, token, ends)
  call('HSET', G .. 'bulk', token, string.rep('h', n), '@' .. token, list)
  begin_lease(token, ends)
end

-- lease takes messages that are in no queue, with their keys ('' for none; nothing if none has one), and returns the places in the list of those that must wait
-- because of their key: for one that is held, has others before it, or has enough of them in this run.
local function lease(ids, keys, token, ends, run)
  if not keys then
    local flight, mark = {}, token .. '/'
    for i, id in ipairs(ids) do flight[2 * i - 1], flight[2 * i] = id, mark end
    hold_all(flight, ids, token, ends)
    return {}
  end
  local distinct, blocked, runs, long = {}, {}, {}, {}
  for _, k in ipairs(keys) do
    if k ~= '' and not long[k] then
      long[k] = 0
      distinct[#distinct + 1] = k
    end
  end
  if #distinct > 0 then
    local busy = call('HMGET', G .. 'busy', unpack(distinct))
    local offered = call('HLEN', G .. 'offer') > 0 and call('HMGET', G .. 'offer', unpack(distinct)) or {}
    for i, k in ipairs(distinct) do blocked[k] = busy[i] or offered[i] end
  end
  local taken, flight, aside, bare = {}, {}, {}, token .. '/'
  for i, id in ipairs(ids) do
    local k = keys[i]
    if k ~= '' and (blocked[k] or long[k] >= run) then
      blocked[k] = true
      aside[#aside + 1] = i
    else
      local mark = bare
      if k ~= '' then
        long[k] = long[k] + 1
        runs[k] = runs[k] and runs[k] .. ' ' .. id or id
        mark = bare .. k
      end
      local n = #taken + 1
      taken[n], flight[2 * n - 1], flight[2 * n] = id, id, mark
    end
  end
  if #taken == 0 then return aside end
  hold_all(flight, taken, token, ends)
  local held = {}
  for k, list in pairs(runs) do
    held[#held + 1] = k
    held[#held + 1] = list
  end
  if #held > 0 then call('HSET', G .. 'busy', unpack(held)) end
  return aside
end

-- notes returns what META has of entries, if it has anything.
local function notes(ids)
  if all_plain() then return {} end
  local list = call('HMGET', T .. 'meta', unpack(ids))
  for i = 1, #ids do list[i] = list[i] or '' end
  return list
end
