-- return: gives back what an admitted message counted. Sent twice, it gives back once.
-- Fragments: head, account, rules.
-- KEYS: 1 the rules that operators set; then for each item: account, window.
-- ARGV: 1 name of the request; then for each item: rule, name of the rule.
-- Returns {}.
local NEWEST = 8
for j = 1, (#ARGV - 1) / 2 do
  local key, window = KEYS[2 * j], KEYS[2 * j + 1]
  if call('ZREM', window, ARGV[1]) == 0 then
    local s = load_account(key)
    local rule = holding(s, rule_named(KEYS[1], ARGV[2 * j + 1], ARGV[2 * j]))
    if s.t and rule.burst > 0 and not string.find(s.g or '', ARGV[1] .. ' ', 1, true) then
      local left, newest = math.min(rule.burst, level(s, rule) + 1), ARGV[1] .. ' ' .. (s.g or '')
      call('HSET', key, 't', string.format('%.17g', left), 'ta', text(now), 'g', string.sub(newest, 1, NEWEST * (#ARGV[1] + 1)))
    end
  end
end
return {}
