-- span: some entries of the stream in a range, whatever became of them.
-- ARGV: 1 partitions, 2 first stream id or "-", 3 last one or "+", 4 most of them.
-- Returns {"stale"} or {"ok", list of {id, published, fields}}.
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
local entries = call('XRANGE', STREAM, ARGV[2], ARGV[3], 'COUNT', ARGV[4])
for i, e in ipairs(entries) do
  local known = call('HGET', META, e[1])
  entries[i] = {e[1], known and match(known, '^%d+') or match(e[1], '^%d+'), e[2]}
end
return {'ok', entries}
