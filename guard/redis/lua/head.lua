-- head: what every script begins with: the server's clock in microseconds, and numbers as text. Redis turns numbers into
-- text with 14 digits, which is too few for a time.
local call, floor = redis.call, math.floor
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local function text(n) return string.format('%.0f', n) end
local function millis(us) return text(math.ceil(us / 1000)) end
