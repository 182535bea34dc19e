-- quick: the beginning of claim, and all of it when there is nothing but plain messages in one lane.
local o = FIRST
local token, most, run, instance = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5]), ARGV[6]
local topic = call('HMGET', TOPIC, 'shards', 'paused')
local group = call('HMGET', KEYS[o + GROUP], 'i', 'paused', 'pass0', 'pass1', 'pass2', 'pass3', 'pass')
if topic[1] ~= ARGV[1] or not group[1] then return {'stale'} end

local function next_timer() return call('ZRANGE', KEYS[o + TIMER], 0, 0, 'WITHSCORES')[2] or '' end

local again = call('HGET', KEYS[o + LEASE], token)
if not again and topic[2] ~= '1' and group[2] ~= '1' and most > 0
  and call('EXISTS', EXPIRES, KEYS[o + LANE], unpack(KEYS, o + LANE + 2, o + CHAIN)) + call('EXISTS', KEYS[o + GONE], KEYS[o + STATE]) == 0 then
  local first = next_timer()
  if first == '' or tonumber(first) > now then
    local items = call('LPOP', KEYS[o + LANE + 1], most)
    if not items then return {'ok', now .. '', first, '', {}, {}, {}} end
    local record, bodies, till = instance .. '\n' .. table.concat(items, '\n'), {}, now + ARGV[4]
    call('HSET', KEYS[o + LEASE], token, record)
    call('ZADD', KEYS[o + TIMER], till, 'L' .. token)
    call('HINCRBY', KEYS[o + GROUP], 'inflight', #items)
    if ARGV[11] == '1' then
      for i = 1, #items do items[i] = seq_of(items[i]) end
      bodies = call('HMGET', BODIES, unpack(items))
    end
    return {'ok', now .. '', first == '' and till .. '' or first, record, {}, bodies, {}}
  end
end
