-- view: what a shard knows of some messages.
-- Fragments: identify, viewing.
-- KEYS: see viewing. ARGV: the sequence numbers.
-- Returns what view says.
return view(ARGV)
