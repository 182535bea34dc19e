-- audit: looks at every message of a partition.
-- ARGV: 1 partitions.
-- Returns {"stale"} or {"ok", how many were looked at, list of {kind, group, id, text}}.
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
advance(1000)
local problems, needed = {}, {}
local function problem(kind, g, id, text) problems[#problems + 1] = {kind, g, id, text} end
local function equal(g, what, a, b)
  if a ~= b then problem('count', g, '', what .. ': ' .. a .. ' counted, ' .. b .. ' found') end
end
for _, g in ipairs(groups()) do
  local n, off = {R = 0, I = 0, W = 0, D = 0, U = 0}, 0
  for _, id in ipairs(call('HKEYS', of(g, 'state'))) do
    local s = state(g, id)
    n[s.s] = (n[s.s] or 0) + 1
    if s.s ~= 'D' then needed[id] = (needed[id] or 0) + 1 end
    if s.s == 'I' and not call('ZSCORE', of(g, 'lease'), id) then problem('orphan', g, id, 'in flight without a lease') end
    if s.s == 'W' and not call('ZSCORE', of(g, 'wait'), id) then problem('orphan', g, id, 'waits without a time') end
    if s.s == 'D' and not call('ZSCORE', of(g, 'dead'), id) then problem('orphan', g, id, 'dead, but not among the dead letters') end
    if s.s == 'R' and s.k == '' and not call('ZSCORE', of(g, 'lane' .. s.l), id) then problem('orphan', g, id, 'ready in no lane') end
    if s.s == 'R' and s.k ~= '' and not call('ZSCORE', of(g, 'chain'), member(s, id)) then problem('orphan', g, id, 'ready, but not in its key') end
    if not meta(id) then problem('orphan', g, id, 'nothing is known of the entry') end
  end
  local last = call('HGET', of(g, 'group'), 'last') or '0-0'
  for _, e in ipairs(call('XRANGE', STREAM, '(' .. last, '+')) do
    if call('HEXISTS', LEFT, e[1]) == 1 and call('SISMEMBER', of(g, 'skip'), e[1]) == 0 then
      n.U = n.U + 1
      needed[e[1]] = (needed[e[1]] or 0) + 1
    end
  end
  equal(g, 'in flight', call('ZCARD', of(g, 'lease')), n.I)
  equal(g, 'waiting', call('ZCARD', of(g, 'wait')), n.W)
  equal(g, 'dead', call('ZCARD', of(g, 'dead')), n.D)
  local f = call('HMGET', of(g, 'group'), 'received', 'acked', 'dropped', 'expired', 'cancelled')
  for i = 1, 5 do f[i] = tonumber(f[i] or 0) end
  equal(g, 'ready', f[1] - f[2] - f[3] - f[4] - f[5] - n.I - n.W - n.D, n.R + n.U)
end
local live = 0
for id, n in pairs(needed) do
  live = live + 1
  equal('', 'groups that need ' .. id, tonumber(call('HGET', LEFT, id) or 0), n)
end
equal('', 'messages', tonumber(call('HGET', TOPIC, 'messages') or 0), live + call('HLEN', LATER))
equal('', 'entries', call('HLEN', LEFT), live)
return {'ok', call('HLEN', META) + call('HLEN', LATER) .. '', problems}
