-- types: makes sure, before the first write, that every key is ours. A script cannot take back what it has written, so it must not
-- stumble half-way over something that another program has put under one of our names: here the read that does not fit it fails.
local OF_TOPIC = {
  HLEN = {'topic', 'groups', 'meta', 'ids', 'left', 'graves', 'later', 'dedup', 'raw'},
  ZCARD = {'laters', 'delayed', 'held', 'expires', 'windows', 'kept', 'invalid'},
  XLEN = {'stream'},
}
local OF_GROUP = {
  HLEN = {'group', 'state', 'flight', 'bulk', 'busy', 'claims', 'offer', 'record', 'history', 'edited', 'done', 'names', 'owner'},
  ZCARD = {'lane0', 'lane1', 'lane2', 'lane3', 'chain', 'wait', 'lease', 'dead', 'off', 'members', 'leaving'},
  SCARD = {'skip'},
}
local function ours(prefix, names_by_read)
  for read, list in pairs(names_by_read) do
    for _, name in ipairs(list) do call(read, prefix .. name) end
  end
end
local function group_ours(g, names_by_read) ours(T .. 'g:' .. g .. ':', names_by_read) end
local looked_at_all = false
local function all_ours()
  if looked_at_all then return end
  looked_at_all = true
  ours(T, OF_TOPIC)
  for _, g in ipairs(call('HKEYS', T .. 'groups')) do group_ours(g, OF_GROUP) end
end

-- ours_for is for a script of one group: looking at all keys of all groups for each of them would cost the square of their number. In the others
-- it writes no more than this, where an entry leaves the stream or another program's is taken on; and advance, which looks by itself.
local IN_OTHERS = {HLEN = {'group', 'done'}, SCARD = {'skip'}}
local function ours_for(g)
  ours(T, OF_TOPIC)
  group_ours(g, OF_GROUP)
  for _, other in ipairs(call('HKEYS', T .. 'groups')) do
    if other ~= g then group_ours(other, IN_OTHERS) end
  end
end
