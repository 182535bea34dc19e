-- guard: scripts that touch all groups are told which ones there are, and refuse when that has changed.
-- ARGV 1: the number of shards; ARGV 2: the epoch of the groups, "" before anything is known.
-- Returns, instead of the script's own result: {"stale", shards, epoch, groups}, all "" when the topic does not exist.
local known = call('HMGET', TOPIC, 'shards', 'epoch', 'groups', 'letters', 'solo', 'dying',
  'seq', 'messages', 'bytes', 'published', 'fanned', 'max_messages', 'max_bytes') -- these for storing
if known[1] ~= ARGV[1] or known[2] ~= ARGV[2] then
  return {'stale', known[1] or '', known[2] or '', known[3] or ''}
end
local letters = known[4]
-- Messages without a set of live groups belong to one group, solo. While a group is being deleted that could be it.
local implied = known[5] == letters and (known[6] or '') == ''
local groups = #letters
