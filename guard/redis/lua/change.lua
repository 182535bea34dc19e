-- change: one change by an operator, with its line in the audit list. Sent twice, it is noted once.
-- Fragments: head, account.
-- KEYS: 1 account, 2 messages that were refused, 3 index of blocked keys, 4 of overridden ones, 5 of whitelisted ones, 6 audit list,
--   7 forced breakers, 8 rules that operators set.
-- ARGV: 1 action, 2 limit and key as the indexes name them, 3 how long (0: for good), 4 rule, 5 actor, 6 reason, 7 the change
--   as JSON, 8 most lines of the list, 9 name of the breaker, 10 name of the request,
--   11 name of the rule, 12 most rules.
-- Returns {}, or {1} if there is no room for another rule.
local ACCOUNT, WAITS, BLOCKED, OVERRIDDEN, WHITELISTED, AUDIT, FORCED, RULES = unpack(KEYS)
local action, name, length, rule, actor, reason = unpack(ARGV, 1, 6)
length = tonumber(length)
local newest = call('LINDEX', AUDIT, 0)
local line = text(now) .. ' ' .. ARGV[10] .. ' ' .. ARGV[7]
if newest and string.match(newest, '^%d+ (%S+) ') == ARGV[10] then return {} end

if action == 'breaker_open' then
  call('HSET', FORCED, ARGV[9], 'open')
elseif action == 'breaker_close' then
  call('HSET', FORCED, ARGV[9], 'closed')
elseif action == 'breaker_auto' then
  call('HDEL', FORCED, ARGV[9])
elseif action == 'set_rule' then
  if call('HEXISTS', RULES, ARGV[11]) == 0 and call('HLEN', RULES) >= tonumber(ARGV[12]) then return {1} end
  call('HSET', RULES, ARGV[11], rule .. '|' .. line)
elseif action == 'clear_rule' then
  call('HDEL', RULES, ARGV[11])
else
  if action == 'block' then
    local till = length == 0 and '0' or text(now + length)
    call('HDEL', ACCOUNT, 'w')
    call('HSET', ACCOUNT, 'b', till)
    call('ZADD', BLOCKED, length == 0 and '+inf' or till, name)
    call('ZREM', WHITELISTED, name)
  elseif action == 'unblock' then
    call('HDEL', ACCOUNT, 'b', 'v', 'l', 'f')
    call('HSET', ACCOUNT, 'p', text(now))
    call('DEL', WAITS)
    call('ZREM', BLOCKED, name)
  elseif action == 'override' then
    call('HSET', ACCOUNT, 'o', rule, 'ou', text(now + length))
    call('ZADD', OVERRIDDEN, text(now + length), name)
  elseif action == 'clear_override' then
    call('HDEL', ACCOUNT, 'o', 'ou')
    call('ZREM', OVERRIDDEN, name)
  elseif action == 'whitelist' then
    call('HDEL', ACCOUNT, 'b', 'v', 'l', 'f')
    call('HSET', ACCOUNT, 'w', '1', 'p', text(now))
    call('DEL', WAITS)
    call('ZREM', BLOCKED, name)
    call('ZADD', WHITELISTED, '+inf', name)
  elseif action == 'unwhitelist' then
    call('HDEL', ACCOUNT, 'w')
    call('ZREM', WHITELISTED, name)
  else
    return redis.error_reply('ERR no such change')
  end
  call('HSET', ACCOUNT, 'a', actor, 'y', reason)
  lasts(ACCOUNT, load_account(ACCOUNT), now + 60000000)
end
call('LPUSH', AUDIT, line)
call('LTRIM', AUDIT, 0, tonumber(ARGV[8]) - 1)
return {}
