-- follow: messages as the topic has them, whatever became of them in its groups.
-- Fragments: head, guard, memory, answers, identify, segments, store, chain, state, flight, view.
-- KEYS: the topic shard, and all its groups.
-- ARGV: 1 shards, 2 epoch, 3 and on sequence numbers.
-- Returns {"ok", views}; of what is not delayed or held the letter is "".
local views = {}
for i = 3, #ARGV do
  local v = view_pending(ARGV[i])
  if not v and call('HEXISTS', BODIES, ARGV[i]) == 1 then v = of_topic(ARGV[i], '', '0', '0') end
  views[#views + 1] = v
end
return {'ok', views}
