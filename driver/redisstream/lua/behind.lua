-- behind: offers what waited behind the messages that ack has ended.
for _, key in ipairs(behind) do front(ARGV[2], key) end
return {'ok', table.concat(results)}
