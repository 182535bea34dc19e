-- answers: what requests were answered, so that one that is repeated, because its answer was lost, changes nothing.
-- A request is named by a slot, which its process uses for one at a time, and a number. A slot keeps the answer to its last
-- request: the same one again gets the same answer and changes nothing. All of it is forgotten a day after the last new slot.
-- Only the process of a slot reads its answer.
local function answered(request)
  local slot, number = match(request, '^(.*):(.*)$')
  local kept = call('HGET', REQUESTS, slot)
  if kept and part(kept, 1, #number + 1) == number .. ' ' then return cmsgpack.unpack(part(kept, #number + 2)) end
end
local function answer(request, reply)
  local slot, number = match(request, '^(.*):(.*)$')
  if call('HSET', REQUESTS, slot, number .. ' ' .. cmsgpack.pack(reply)) == 1 then
    call('HSET', REQUESTS, '-', string.rep('-', 65))
    call('PEXPIRE', REQUESTS, 86400000)
  end
  return reply
end
