-- status: everything about some keys.
-- Fragments: head, account.
-- KEYS: for each key: account, window.
-- Returns the time, then for each key: rule, used, violations, level, 1 if blocked, until when (0: for good), rule of the
--   override, until when, 1 if whitelisted, actor, reason. All as text.
local out = {text(now)}
for j = 1, #KEYS, 2 do
  local s = load_account(KEYS[j])
  local used = 0
  if s.r then
    local rule = holding(s, s.r)
    if rule.unlimited then
      used = 0
    elseif rule.burst > 0 then
      used = rule.burst - floor(level(s, rule))
    else
      used = call('ZCOUNT', KEYS[j + 1], '(' .. text(now - rule.window), '+inf')
    end
  end
  local overridden = s.ou and tonumber(s.ou) > now
  for _, v in ipairs({
    s.r or '', text(used), s.v or '0', s.f and tonumber(s.f) > now and s.l or '0',
    blocked(s) and '1' or '0', s.b or '0', overridden and s.o or '', overridden and s.ou or '0',
    s.w and '1' or '0', s.a or '', s.y or '',
  }) do out[#out + 1] = v end
end
return out
