-- names: all keys there are, to delete them.
local GROUP_KEYS = {'group', 'state', 'lane0', 'lane1', 'lane2', 'lane3', 'chain', 'flight', 'bulk', 'busy', 'claims', 'offer', 'wait', 'lease', 'dead', 'record',
  'history', 'edited', 'done', 'skip', 'off', 'members', 'leaving', 'names', 'owner', 'fence'}
local TOPIC_KEYS = {TOPIC, STREAM, GROUPS, META, IDS, LEFT, GRAVES, LATER, LATERS, DELAYED, HELD, EXPIRES, DEDUP, WINDOWS, KEPT, INVALID, RAW}
