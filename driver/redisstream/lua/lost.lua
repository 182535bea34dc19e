-- lost: claims whose answer did not come. What they took returns to its place, uncounted.
local function return_lost(g, tokens)
  if tokens == '' then return end
  local lost = {}
  for token in string.gmatch(tokens, '%S+') do lost[token] = true end
  for _, id in ipairs(call('ZRANGE', of(g, 'lease'), 0, -1)) do
    local s = state(g, id)
    if s and s.s == 'I' and lost[s.o] then
      take_out(g, id, s)
      s.c = RELEASED
      come_back(g, id, s)
    end
  end
end
