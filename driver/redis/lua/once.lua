-- once: a script that is repeated, because its answer was lost, gives the same answer and changes nothing.
-- ARGV 3: the id of the request.
local before = recall('q' .. ARGV[3])
if before then
  local answer = {}
  for text in string.gmatch(before, '([^\n]*)\n') do answer[#answer + 1] = text end
  return answer
end
-- once remembers the answer of a script that has changed something.
local function once(answer)
  remember('q' .. ARGV[3], table.concat(answer, '\n') .. '\n')
  return answer
end
