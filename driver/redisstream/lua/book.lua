-- book: takes over what the owner of a partition has read.
-- Returns {"stale"}, {"lost"}, or {"ok", now, places in the list of those that it does not get now, what META has of all}.
-- (The rest of guard, which comes before; here begins what is not plain.)
local g, rest = ARGV[2], {}
for i, place_in in ipairs(aside) do rest[i] = {ids[place_in], entry_of(ids[place_in])} end
ahead(g, rest)
call('HSET', of(g, 'group'), 'last', ids[n])
return {'ok', int(now), aside, told}
