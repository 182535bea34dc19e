-- rules: rules of limits and groups that operators set, a hash: name of the rule -> the rule, a bar, and the change that set it.
-- Returns the rule that holds for an item: the one of its name, or else the one that it brings.
local shared = {}
local function rule_named(hash, name, packed)
  if shared.none == nil then shared.none = call('EXISTS', hash) == 0 end
  if shared.none or name == '' then return packed end
  if shared[':' .. name] == nil then
    local value = call('HGET', hash, name)
    shared[':' .. name] = value and string.match(value, '^[^|]*') or false
  end
  return shared[':' .. name] or packed
end
