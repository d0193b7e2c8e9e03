-- What one partition of a crawl holds of one origin, for people. It writes nothing.
-- KEYS[1]: the prefix, ARGV[1]: the origin, ARGV[2...]: the names that its home may have. The reply is JSON, as OriginState has it;
-- times are seconds from now.
local P, origin = KEYS[1], ARGV[1]
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local out = { left = call('HLEN', P .. 't:' .. origin), ended = call('SCARD', P .. 'd:' .. origin), out = 0 }

local function left_until(score) return score and (tonumber(score) - now) / 1000000 or nil end

local function home_of()
  for i = 2, #ARGV do
    local home = ARGV[i]
    -- A home whose only origin is `https://<home>` has no `x`.
    if call('ZSCORE', P .. 'x:' .. home, origin) or (origin == 'https://' .. home and out.left > 0) then return home end
  end
  for i = 2, #ARGV do
    if call('HGET', P .. 'h', ARGV[i]) then return ARGV[i] end
  end
end

local home = home_of()
if home then
  local owner, free_at = string.match(call('HGET', P .. 'h', home) or '', '^([^:]*):[^:]*:[^:]*:([^:]*)')
  out.home, out.delayed_s = home, math.max(0, left_until(free_at or '0'))
  if owner and owner ~= '' then
    out.session, out.ends_s = owner, left_until(call('HGET', P .. 's', owner))
  end
  out.line_s = left_until(call('ZSCORE', P .. 'l', home))
  out.postponed_s = left_until(call('ZSCORE', P .. 'later', 'o\n' .. home .. '\n' .. origin))
  local outs = call('HGETALL', P .. 'o:' .. home)
  for i = 2, #outs, 2 do
    if string.match(outs[i], '^[^:]*:(.*)$') == origin then out.out = out.out + 1 end
  end
end
return cjson.encode(out)
