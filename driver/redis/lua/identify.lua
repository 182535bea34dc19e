-- identify finds the id in an envelope, as the index has it, whether the producer chose it, and where what follows begins.
local slice = string.sub
local function identify(body)
  local _, _, tag, size = string.byte(body, 1, 4)
  if slice(body, 1, 2) ~= '\8\1' or not size then return nil end
  local at, kind = 5, ''
  if tag == 18 and size == 16 then kind = '\0'
  elseif tag ~= 26 then return nil
  elseif size >= 128 then size, at = size - 128 + string.byte(body, 5) * 128, 6 end
  local own = slice(body, at + size, at + size + 1) == '\32\1'
  return kind .. slice(body, at, at + size - 1), own, at + size + (own and 2 or 0)
end

-- key_in is the key in an envelope, as items have it, or "".
local function key_in(body)
  local _, _, at = identify(body)
  local tag, size, more = string.byte(body, at or #body + 1, (at or 0) + 2)
  if tag ~= 50 or not size then return '' end
  if size >= 128 then size, at = size - 128 + (more or 0) * 128, at + 1 end
  return ':' .. slice(body, at + 2, at + 1 + size)
end
