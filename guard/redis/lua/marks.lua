-- marks: begins, completes and gives up work, many at once. A mark is "d" when the work is done, else who does it.
-- Fragments: head.
-- KEYS: for each request: the mark.
-- ARGV: for each request: "b" to begin or renew, "c" to complete, "a" to give up; name of the holder, how long it lasts.
-- Returns for each request: 0 another is at it, 1 it is ours, 2 it is done; when the other's lease ends.
local replies = {}
for j = 1, #KEYS do
  local key, op, holder, lasts = KEYS[j], ARGV[3 * j - 2], ARGV[3 * j - 1], millis(tonumber(ARGV[3 * j]))
  local state, after = 1, 0
  if op == 'c' then
    call('SET', key, 'd', 'PX', lasts)
  else
    local mark = call('GET', key)
    if op == 'a' then
      if mark == holder then call('DEL', key) end
    elseif mark == 'd' then
      state = 2
    elseif not mark or mark == holder then
      call('SET', key, holder, 'PX', lasts)
    else
      state, after = 0, call('PTTL', key) * 1000
    end
  end
  replies[#replies + 1] = state
  replies[#replies + 1] = after
end
return replies
