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
local function all_ours()
  ours(T, OF_TOPIC)
  for _, g in ipairs(call('HKEYS', T .. 'groups')) do ours(T .. 'g:' .. g .. ':', OF_GROUP) end
end
