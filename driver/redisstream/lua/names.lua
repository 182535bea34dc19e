-- names: all keys there are, to delete them.
local GROUP_KEYS = {'group', 'state', 'lane0', 'lane1', 'lane2', 'lane3', 'chain', 'flight', 'bulk', 'busy', 'claims', 'offer', 'wait', 'lease', 'dead', 'record',
  'history', 'edited', 'done', 'skip', 'off', 'members', 'leaving', 'names', 'owner', 'fence'}
local TOPIC_KEYS = {TOPIC, STREAM, GROUPS, META, IDS, LEFT, GRAVES, LATER, LATERS, DELAYED, HELD, EXPIRES, DEDUP, WINDOWS, KEPT, INVALID, RAW}

local function unlink_group(g)
  for _, name in ipairs(GROUP_KEYS) do call('UNLINK', of(g, name)) end
end
local function unlink_all()
  for _, g in ipairs(groups()) do unlink_group(g) end
  call('UNLINK', unpack(TOPIC_KEYS))
end
