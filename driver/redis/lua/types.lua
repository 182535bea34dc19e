-- types: makes sure, before the first write, that every key is ours. A script cannot take back what it has written, so it must not
-- stumble half-way over something that another program has put under one of our names: here the read that does not fit it fails.
do
  local reads = {H = 'HLEN', L = 'LLEN', Z = 'ZCARD'}
  local of_topic, of_group = 'HHHHHZZZHZHHZHZHHHH', 'HLLLLZZZZHHHHZ-ZHHHZH' -- keys.go has them in the same order
  for i = 1, FIRST do call(reads[part(of_topic, i, i)], KEYS[i]) end
  for o = FIRST, #KEYS - WIDTH, WIDTH do
    for i = 1, WIDTH do
      if i ~= GONE then call(reads[part(of_group, i, i)], KEYS[o + i]) end
    end
    call('SISMEMBER', KEYS[o + GONE], '')
  end
end
