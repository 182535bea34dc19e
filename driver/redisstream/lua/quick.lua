-- quick: leases the plain messages that the gate has read.
local blocked, taken, told
if entries then
  local ids, keys, plain, keyed = {}, {}, true, false
  for i, e in ipairs(entries) do
    ids[i], keys[i] = e[1], key_of(e[2])
    plain, keyed = plain and e[2][1] == 'v', keyed or keys[i] ~= ''
  end
  if not plain then
    local fine, problem = pcall(all_ours)
    if not fine then -- they are read, and the next claim finds them
      call('HSET', G .. 'group', 'reading', 1)
      return type(problem) == 'table' and problem or redis.error_reply(problem)
    end
  end
  if plain then
    local whole, aside = not keyed and group[9] == '1' and all_plain(), {}
    if whole then
      hold_whole(#ids, table.concat(ids, ' '), ARGV[5], at + ARGV[7])
    else
      aside = lease(ids, keyed and keys, ARGV[5], at + ARGV[7], tonumber(ARGV[8]))
    end
    call('HSET', G .. 'group', 'last', ids[#ids])
    if #ids < asked then call('HSET', G .. 'group', 'hungry', 1) end
    told = whole and {} or notes(ids)
    if #aside == 0 then return {'ok', string.format('%.0f', at), topic[3] or '', '', {}, entries, told, whole and '1' or ''} end
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
