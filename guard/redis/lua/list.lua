-- list: names in an index of keys, from an offset on. What has ended is taken out first.
-- Fragments: head.
-- KEYS: 1 the index.
-- ARGV: 1 offset, 2 most names.
-- Returns the names.
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now))
return call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'LIMIT', ARGV[1], ARGV[2])
