-- quick: the beginning of claim, and all of it when that is simple.
if not find_out() then return {'stale'} end
local simple = quick_claim()
if simple then return simple end
