-- hear: a holder that speaks of a delivery it has lost is alive, so that the message did not end it. If the delivery had begun, its loss does not
-- count any more, or will not when it is noticed.
local STATES = string.sub(KEYS[1], 1, -6) .. 'g:' .. ARGV[2] .. ':state'
local function hear(id, token)
  local v = redis.call('HGET', STATES, id)
  local fine, s = pcall(cmsgpack.unpack, v or '')
  if not v or not fine or type(s) ~= 'table' then return end
  if s.s == 'I' and s.b == token then -- its lease has ended, and nobody has noticed yet
    s.b, s.h = nil, true
    return redis.call('HSET', STATES, id, cmsgpack.pack(s))
  end
  for i, lost in ipairs(s.s ~= 'D' and s.u or {}) do
    if lost == token then
      table.remove(s.u, i)
      s.x = s.x - 1
      return redis.call('HSET', STATES, id, cmsgpack.pack(s))
    end
  end
end
