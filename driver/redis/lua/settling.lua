-- settling: ends deliveries.

-- fail counts a failed attempt and adds the failure to the history, of which the newest ten are kept.
local function fail(o, seq, s, failure)
  s.failed = s.failed + 1
  if failure == '' then return end
  local history = (call('HGET', KEYS[o + HISTORY], seq) or '') .. now .. ' ' .. s.failed .. ' ' .. #failure .. '\n' .. failure
  local starts, at = {}, 1
  while at <= #history do
    local _, stop, length = find(history, '^%d+ %d+ (%d+)\n', at)
    if not stop then return call('HDEL', KEYS[o + HISTORY], seq) end -- damaged
    starts[#starts + 1] = at
    at = stop + 1 + length
  end
  if #starts > 10 then history = part(history, starts[#starts - 9]) end
  call('HSET', KEYS[o + HISTORY], seq, history)
end

-- settle_one reads from ARGV[at] on: token of the lease it is believed to be in, sequence number, outcome (a ack, r retry, d dead, l release, x drop, u release
-- of what no handler saw, which keeps its cause), wait in ms, failure, instance. It returns k when settled or l when lost, and adds to ended the sequence numbers that were
-- returned with others of their key.
local function settle_one(o, at, ended)
  local token, seq, outcome, after, failure, instance = unpack(ARGV, at, at + 5)
  local l = holder_of(o, token, seq)
  local item = l and l.items[seq]
  if not item then
    hear_late(o, token, seq)
    return 'l'
  end
  unlease(o, l, seq)
  local s = state_of(o, seq) or new_state(item)
  local ordered = strict(o, item)
  if ordered and (outcome == 'r' or outcome == 'l' or outcome == 'u') then
    release_behind(o, l.token, {[key_of(item)] = place_of(item)}, ended)
  end
  if outcome == 'a' or outcome == 'x' then
    unhold(o, item)
    done(o, seq, outcome == 'a' and 'acked' or 'dropped')
  elseif outcome == 'd' then
    fail(o, seq, s, failure)
    unhold(o, item)
    bury(o, seq, s, instance, failure)
  elseif outcome == 'l' or outcome == 'u' then
    if outcome == 'l' then s.cause = RELEASED end
    if after == '0' then come_back(o, item, s) else wait(o, item, s, soon + after, false, true) end
  else
    fail(o, seq, s, failure)
    tally(o, 'retried', 1)
    s.cause = RETRY
    if after ~= '0' then
      wait(o, item, s, soon + after, not ordered, true)
    elseif ordered or s.letter == 'X' or overdue(seq) then
      come_back(o, item, s)
    else
      s.letter, s.item = 'R', renewed(item)
      save(o, seq, s)
      unhold(o, item)
      join(o, s.item, true)
    end
  end
  return 'k'
end
