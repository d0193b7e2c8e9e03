-- What one partition of a crawl holds, for people. It writes nothing.
-- KEYS[1]: the prefix, ARGV[1]: how many entries of each list. The reply is JSON, as PartitionState has it; times are seconds from now.
local P, limit = KEYS[1], tonumber(ARGV[1])
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local out = { sessions = {}, held = {}, line = {}, later = {} }

local numbers = call('HMGET', P .. 'm', 'waiting', 'done', 'refused', 'dropped', 'quiet')
for i, name in ipairs({ 'waiting', 'done', 'refused', 'dropped' }) do out[name] = tonumber(numbers[i] or '0') end

local function left_until(score) return (tonumber(score) - now) / 1000000 end
out.quiet_s = math.max(0, left_until(numbers[5] or '0'))

-- Sessions are as many as processes.
local sessions, held = call('HGETALL', P .. 's'), 0
for i = 1, #sessions, 2 do
  local id, homes = sessions[i], call('SCARD', P .. 'held:' .. sessions[i])
  held = held + homes
  if #out.sessions < limit then
    out.sessions[#out.sessions + 1] = { id, left_until(sessions[i + 1]), homes, call('SISMEMBER', P .. 'closed', id) == 1 }
    if homes > 0 then
      local room = limit - #out.held
      for _, home in ipairs(room > 0 and call('SRANDMEMBER', P .. 'held:' .. id, room) or {}) do
        local row = call('HGET', P .. 'h', home) or ''
        local free_at = string.match(row, '^[^:]*:[^:]*:[^:]*:([^:]+)') or '0'
        out.held[#out.held + 1] = { home, id, math.max(0, left_until(free_at)) }
      end
    end
  end
end

local function first(key)
  local entries, list = call('ZRANGE', key, 0, limit - 1, 'WITHSCORES'), {}
  for i = 1, #entries, 2 do list[#list + 1] = { entries[i], left_until(entries[i + 1]) } end
  return list
end
out.line = first(P .. 'l')
for i, entry in ipairs(first(P .. 'later')) do
  local kind, home, origin = string.match(entry[1], '^([^\n]*)\n([^\n]*)\n([^\n]*)')
  out.later[i] = { home or '', origin or '', kind == 't', entry[2] }
end
out.counts = { #sessions / 2, held, call('ZCARD', P .. 'l'), call('ZCARD', P .. 'later') }
return cjson.encode(out)
