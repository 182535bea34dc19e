-- answers: what requests were answered, so that one that is repeated, because its answer was lost, changes nothing.
-- A request is named by a slot, which its process uses for one at a time, and a number. A slot keeps the answer to its last
-- request: the same one again gets the same answer and changes nothing. All of it is forgotten a day after the last new slot.
local function answered(letter, request)
  local slot, number = match(request, '^(.*):(.*)$')
  local answer = call('HGET', REQUESTS, letter .. slot)
  if answer and part(answer, 1, #number + 1) == number .. ' ' then return part(answer, #number + 2) end
end
local function answer(letter, request, text)
  local slot, number = match(request, '^(.*):(.*)$')
  if call('HSET', REQUESTS, letter .. slot, number .. ' ' .. text) == 1 then
    call('HSET', REQUESTS, '-', string.rep('-', 65))
    call('PEXPIRE', REQUESTS, 86400000)
  end
end
