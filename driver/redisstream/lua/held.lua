-- held tells whether a delivery is still its holder's.
local function held(g, id, s, token)
  if not s or s.s ~= 'I' or s.o ~= token then return false end
  local till = call('ZSCORE', of(g, 'lease'), s.alone and '*' .. id or token)
  return till and tonumber(till) > now
end
