-- meant: the group that a call means, in ARGV 2. One that is named must exist.
local g = ARGV[2]
if g ~= '' and call('HEXISTS', GROUPS, g) == 0 then return {'missing', groups()} end
