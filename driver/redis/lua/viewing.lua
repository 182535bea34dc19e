-- viewing: everything that a shard knows of some messages, as some groups see them. It changes nothing.
-- KEYS: 1 topic, 2 bodies, 3 live, 4 pending, 5 delayed, 6 expires, 7 ids; then of each group: hash, state, record, history, edited, leases.
local call, floor = redis.call, math.floor

-- fields returns what a hash has of messages. Many have nothing of most hashes, and to say so of each costs more than to look.
local function fields(key, seqs)
  if call('EXISTS', key) == 0 then return {} end
  return call('HMGET', key, unpack(seqs))
end

-- scores returns the scores of members of a sorted set that few messages are in.
local function scores(key, seqs)
  local all = {}
  if call('EXISTS', key) == 0 then return all end
  for i = 1, #seqs do all[i] = call('ZSCORE', key, seqs[i]) end
  return all
end

-- indexed returns what the index knows of messages: when they were published.
local function indexed(bodies, n)
  local ids = {}
  for i = 1, n do ids[i] = bodies[i] and identify(bodies[i]) or '' end
  return call('HMGET', KEYS[7], unpack(ids))
end

-- view returns {epoch, groups, solo}, then what there is of each message: envelope, live groups, item, due, expiry, index; then of each group
-- {its letter, states, records, histories, contents, leases}. Without messages it returns the first of it alone.
local function view(seqs)
  local topic = call('HMGET', KEYS[1], 'epoch', 'groups', 'solo')
  if #seqs == 0 then return {topic} end
  local bodies = call('HMGET', KEYS[2], unpack(seqs))
  local out = {topic, bodies, fields(KEYS[3], seqs), fields(KEYS[4], seqs),
    scores(KEYS[5], seqs), scores(KEYS[6], seqs), indexed(bodies, #seqs)}
  for at = 8, #KEYS - 5, 6 do
    local group = {call('HGET', KEYS[at], 'i')}
    for k = 1, 4 do group[k + 1] = fields(KEYS[at + k], seqs) end
    group[6] = call('HVALS', KEYS[at + 5])
    out[#out + 1] = group
  end
  return out
end
