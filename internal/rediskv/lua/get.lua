-- get: reads values. ARGV: their names. Returns now, and for each value {revision, epoch, written, ends, data} or nothing.
local results = {millis}
for i, name in ipairs(ARGV) do results[i + 1] = get(name) or {} end
return results
