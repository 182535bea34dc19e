-- meant: the group that a call means, by its name in ARGV 3: o is where its keys begin, nil if none is named or there is no such group.
local function offset(name)
  local at = FIRST
  for other in string.gmatch(known[3], '%S+') do
    if other == name then return at end
    at = at + WIDTH
  end
end
local o = offset(ARGV[3])
