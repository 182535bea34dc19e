-- slim: what the fastest scripts of a group begin with, instead of head. at is the server's time in ms.
local call = redis.call
local T = string.sub(KEYS[1], 1, -6)
local G = T .. 'g:' .. ARGV[2] .. ':'
local clock = call('TIME')
local at = clock[1] * 1000 + math.floor(clock[2] / 1000)
