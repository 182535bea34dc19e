-- slots: takes, renews and frees slots, many at once. A slot is a lease: a member of a set that is sorted by when leases end.
-- Sent twice, it takes one slot.
-- Fragments: head.
-- KEYS: for each request: the set.
-- ARGV: for each request: "a" to take or renew, "r" to free; name of the slot, most slots, length of the lease.
-- Returns for each request: 1 if it is held, when the next lease ends.
local replies = {}
for j = 1, #KEYS do
  local key, op, name, most, lease = KEYS[j], ARGV[4 * j - 3], ARGV[4 * j - 2], tonumber(ARGV[4 * j - 1]), tonumber(ARGV[4 * j])
  local held, after = 0, 0
  if op == 'r' then
    call('ZREM', key, name)
  else
    call('ZREMRANGEBYSCORE', key, '-inf', text(now))
    if call('ZSCORE', key, name) or call('ZCARD', key) < most then
      held = 1
      call('ZADD', key, text(now + lease), name)
      local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
      call('PEXPIREAT', key, millis(tonumber(last[2])))
    else
      local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
      after = tonumber(first[2]) - now
    end
  end
  replies[#replies + 1] = held
  replies[#replies + 1] = after
end
return replies
