-- span: some entries of the stream in a range, whatever became of them.
-- Fragments: head, types, there, spread, state, replay.
-- ARGV: 1 partitions, 2 "", 3 position of the first ("" the begin), 4 position they are before ("" the end), 5 most of them.
-- Returns {"stale"} or {"ok", list of {id, published, fields}}.
local from, to = start_of(ARGV[3]) or '-', start_of(ARGV[4])
if to == '0-0' then return {'ok', {}} end -- nothing is before the begin
local entries = call('XRANGE', STREAM, from, to and '(' .. to or '+', 'COUNT', ARGV[5])
for i, e in ipairs(entries) do
  local known = call('HGET', META, e[1])
  entries[i] = {e[1], known and match(known, '^%d+') or match(e[1], '^%d+'), e[2]}
end
return {'ok', entries}
