-- identify finds the id in an envelope, as the index has it, and whether the producer chose it.
local slice = string.sub
local function identify(body)
  local _, _, tag, size = string.byte(body, 1, 4)
  if slice(body, 1, 2) ~= '\8\1' or not size then return nil end
  if tag == 18 and size == 16 then return '\0' .. slice(body, 5, 20), slice(body, 21, 22) == '\32\1' end
  if tag ~= 26 then return nil end
  local at = 5
  if size >= 128 then size, at = size - 128 + string.byte(body, 5) * 128, 6 end
  return slice(body, at, at + size - 1), slice(body, at + size, at + size + 1) == '\32\1'
end
