-- What all processes of a crawl must agree on. KEYS[1]: its hash. ARGV[1]: the schema; then field, value, field, value, ...
-- A field that is not there yet is set, unless something does not agree: then nothing is written. The reply is the whole hash.
-- One step, so that two processes cannot set half each.
local key = KEYS[1]
local known = redis.call('EXISTS', key) == 1
local agreed = not known or redis.call('HGET', key, 'schema') == ARGV[1]
for i = 2, #ARGV, 2 do
  local value = redis.call('HGET', key, ARGV[i])
  if value and value ~= ARGV[i + 1] and ARGV[i] ~= 'partitions' then agreed = false end
end
if agreed then
  redis.call('HSETNX', key, 'schema', ARGV[1])
  for i = 2, #ARGV, 2 do redis.call('HSETNX', key, ARGV[i], ARGV[i + 1]) end
end
return redis.call('HGETALL', key)
