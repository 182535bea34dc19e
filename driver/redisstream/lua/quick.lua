-- quick: leases the plain messages that the gate has read.
local blocked, taken, told
if entries then
  local ids, keys, plain = {}, {}, true
  for i, e in ipairs(entries) do
    ids[i], keys[i] = e[1], key_of(e[2])
    plain = plain and e[2][1] == 'v'
  end
  if not plain then
    local fine, problem = pcall(all_ours)
    if not fine then -- they are read, and the next claim finds them
      call('HSET', G .. 'group', 'reading', 1)
      return type(problem) == 'table' and problem or redis.error_reply(problem)
    end
  end
  if plain then
    local aside = lease(ids, keys, ARGV[5], at + ARGV[7], tonumber(ARGV[8]))
    call('HSET', G .. 'group', 'last', ids[#ids])
    if #ids < asked then call('HSET', G .. 'group', 'hungry', 1) end
    told = notes(ids)
    if #aside == 0 then return {'ok', string.format('%.0f', at), topic[3] or '', '', {}, entries, told} end
    blocked, taken = {}, {}
    local next_aside, some = 1, #told > 0
    for i, e in ipairs(entries) do
      if aside[next_aside] == i then
        next_aside = next_aside + 1
        blocked[#blocked + 1] = e
      else
        taken[#taken + 1] = e
        if some then told[#taken] = told[i] end
      end
    end
  end
end
