-- once: a script that is repeated, because its answer was lost, gives the same answer and changes nothing.
-- ARGV 3: the id of the request.
local before = answered('q', ARGV[3])
if before then
  local texts = {}
  for text in string.gmatch(before, '([^\n]*)\n') do texts[#texts + 1] = text end
  return texts
end
-- once remembers the answer of a script that has changed something.
local function once(texts)
  answer('q', ARGV[3], table.concat(texts, '\n') .. '\n')
  return texts
end
