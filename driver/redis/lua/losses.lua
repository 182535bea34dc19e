-- losses: which lost leases count as deliveries. The first one of a message counts. A later one counts if its handler had begun, until its
-- holder is heard of again: then it lives, and did not die of the message.
--
-- LOSSES has a record of few messages: words, of which the first letter says what it is: "!" a lease was lost before, "+" the claim
-- whose handler has begun, "-" a claim that was lost, counted, and not heard of since. Of the last the latest 16 are kept.
local SILENT_MOST = 16

local function claim_of(token) return match(token, '^[^.]*') end

local function losses_of(o, seq)
  local r = {silent = {}}
  local words = has(o + LOSSES) and call('HGET', KEYS[o + LOSSES], seq)
  for letter, claim in string.gmatch(words or '', '(%S)(%S*)') do
    if letter == '!' then
      r.lapsed = true
    elseif letter == '+' then
      r.begun = claim
    else
      r.silent[#r.silent + 1] = claim
    end
  end
  return r
end

local function save_losses(o, seq, r)
  local words = {r.lapsed and '!' or nil}
  if r.begun then words[#words + 1] = '+' .. r.begun end
  for _, claim in ipairs(r.silent) do words[#words + 1] = '-' .. claim end
  call('HSET', KEYS[o + LOSSES], seq, table.concat(words, ' '))
  made(o + LOSSES)
end

-- begin notes that the handler of a delivery is about to start.
local function begin(o, token, seq)
  local r = losses_of(o, seq)
  if r.begun == claim_of(token) then return end
  r.begun = claim_of(token)
  save_losses(o, seq, r)
end

-- count_loss notes in the state s that the lease of a delivery was lost.
local function count_loss(o, token, seq, s)
  local r, claim = losses_of(o, seq), claim_of(token)
  local begun = r.begun == claim
  if begun or not r.lapsed and tonumber(s.lost) == 0 then s.lost = s.lost + 1 end
  s.cause = LOST
  if not begun then return end
  r.begun, r.lapsed = nil, true
  r.silent[#r.silent + 1] = claim
  if #r.silent > SILENT_MOST then table.remove(r.silent, 1) end
  save_losses(o, seq, r)
end

-- take_back undoes the count of a lost delivery, once.
local function take_back(o, token, seq)
  local r, claim = losses_of(o, seq), claim_of(token)
  for i, silent in ipairs(r.silent) do
    if silent == claim then
      table.remove(r.silent, i)
      save_losses(o, seq, r)
      local s = state_of(o, seq)
      if s then
        s.lost = math.max(0, s.lost - 1)
        save(o, seq, s)
      end
      return
    end
  end
end
