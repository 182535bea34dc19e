-- account: the state of one key of one limit, a hash:
--   r the rule it was last asked with, v violations in a row, l level of the next penalty, f when that is forgotten,
--   p what was published before is no violation,
--   b until when it is blocked (0: for good), o the rule of an override and ou until when, w "1" when whitelisted,
--   t tokens and ta when that was right, n the newest calls with how many of each passed, g the newest that were given back, a and y actor and reason of the last change,
--   q the request that caused the last penalty and its length, x when all of it may be forgotten (0: never).
-- A rule is text: limit, window, burst, unlimited, then of the penalty after, block, factor, max, history; times in us.
local FIELDS = {'r', 'v', 'l', 'f', 'p', 'b', 'o', 'ou', 'w', 't', 'ta', 'n', 'g', 'x', 'a', 'y', 'q'}
local function load_account(key)
  local values, s = call('HMGET', key, unpack(FIELDS)), {}
  for i, name in ipairs(FIELDS) do s[name] = values[i] or nil end
  return s
end

local rules = {}
local function rule_of(packed)
  local r = rules[packed]
  if not r then
    local n = {}
    for word in string.gmatch(packed, '%S+') do n[#n + 1] = tonumber(word) end
    r = {limit = n[1], window = n[2], burst = n[3], unlimited = n[4] == 1,
      after = n[5], block = n[6], factor = n[7], max = n[8], history = n[9]}
    rules[packed] = r
  end
  return r
end

local function blocked(s) return s.b and (tonumber(s.b) == 0 or tonumber(s.b) > now) end
local function holding(s, packed)
  if s.ou and tonumber(s.ou) > now then return rule_of(s.o) end
  return rule_of(packed)
end

-- tokens there are now. A clock that was set back takes none away.
local function level(s, rule)
  if not s.t then return rule.burst end
  return math.min(rule.burst, tonumber(s.t) + math.max(0, now - tonumber(s.ta)) * rule.limit / rule.window)
end

-- lasts makes an account live until a time at least, and a second more so that not every message must say so; whatever
-- has no end makes it live for good.
local function lasts(key, s, till)
  if s.w or s.b and tonumber(s.b) == 0 then
    if s.x ~= '0' then
      call('PERSIST', key)
      call('HSET', key, 'x', '0')
      s.x = '0'
    end
    return
  end
  till = math.max(till, tonumber(s.b or 0), tonumber(s.ou or 0), tonumber(s.f or 0))
  if not s.x or s.x == '0' or till > tonumber(s.x) then
    s.x = text(till + 1000000)
    call('HSET', key, 'x', s.x)
    call('PEXPIREAT', key, millis(till + 1000000))
  end
end
