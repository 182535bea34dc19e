-- lost: claims whose answer did not come. What they took returns to its place as if nobody had claimed it, because nobody has seen it.
local function return_lost(g, tokens)
  if tokens == '' then return end
  one_by_one(g)
  for token in string.gmatch(tokens, '%S+') do
    for id in string.gmatch(call('HGET', of(g, 'claims'), token) or '', '%S+') do
      local s = state(g, id)
      if s and s.s == 'I' and s.o == token then
        take_out(g, id, s)
        come_back(g, id, s)
      end
    end
  end
end
