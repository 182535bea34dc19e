-- segments: how many messages each thousand of sequence numbers has. One that has none is not listed.
local function resize(segment, n)
  if call('HINCRBY', SIZES, segment, n) > 0 then return end
  call('HDEL', SIZES, segment)
  call('ZREM', SEGMENTS, segment)
end
