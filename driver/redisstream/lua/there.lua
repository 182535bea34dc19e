-- there: the topic must have as many partitions as the caller believes; and nothing is written if a key is not ours.
all_ours()
if call('HGET', TOPIC, 'partitions') ~= ARGV[1] then return {'stale'} end
