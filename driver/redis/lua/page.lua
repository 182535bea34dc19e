-- page: the next messages of a shard in the order of their sequence numbers, and what it knows of them.
-- Fragments: identify, viewing.
-- KEYS: see viewing, of one group or none; the last one: segments.
-- ARGV: 1 sequence number behind which to begin, 2 how many messages, 3 how many numbers to try, 4 how many bytes of messages, beyond which
--   no further one is read, 5 the highest segment.
-- Returns {the last number that was tried, 1 if there is nothing behind it, the numbers found, what view says of them}.
local at, most, tries, bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local seqs, ended = {}, 0
while ended == 0 and #seqs < most and tries > 0 and bytes > 0 do
  -- The score alone tells which segment it is: a member that differs from it is damaged, and must not lead back.
  local found = call('ZRANGEBYSCORE', KEYS[#KEYS], floor((at + 1) / 1024), ARGV[5], 'WITHSCORES', 'LIMIT', 0, 1)
  if found[2] then
    local segment = floor(tonumber(found[2]))
    at = math.max(at, segment * 1024 - 1)
    while at < segment * 1024 + 1023 and #seqs < most and tries > 0 and bytes > 0 do
      at, tries = at + 1, tries - 1
      local seq = at .. ''
      local size = call('HSTRLEN', KEYS[2], seq)
      if size > 0 then seqs[#seqs + 1], bytes = seq, bytes - size end
    end
  else
    ended = 1
  end
end
return {at .. '', ended, seqs, view(seqs)}
