-- spread: a claim of plain messages without keys is noted whole, in the hash "bulk": under its token a letter for each message (h held,
-- - not any more), and under "@" and the token their ids. Whatever looks at single messages has them noted one by one first.
local function spread(of_group)
  local all, noted = redis.call('HGETALL', of_group .. 'bulk'), {}
  if #all == 0 then return end
  for i = 1, #all, 2 do noted[all[i]] = all[i + 1] end
  for token, letters in pairs(noted) do
    local flight, held, n = {}, {}, 0
    for id in string.gmatch(noted['@' .. token] or '', '%S+') do
      n = n + 1
      if string.sub(letters, n, n) == 'h' then
        held[#held + 1] = id
        flight[#flight + 1] = id
        flight[#flight + 1] = token .. '/'
      end
    end
    if #held > 0 then
      -- A program of before may have ended the lease of what it cannot read: then its end is to be noticed now.
      if not redis.call('ZSCORE', of_group .. 'lease', token) then
        redis.call('ZADD', of_group .. 'lease', 0, token)
        redis.call('HSET', KEYS[1], 'next', 0)
      end
      redis.call('HSET', of_group .. 'flight', unpack(flight))
      redis.call('HSET', of_group .. 'claims', token, table.concat(held, ' '), '#' .. token, #held)
    end
  end
  redis.call('DEL', of_group .. 'bulk')
end
