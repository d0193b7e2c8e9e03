-- robots.txt of one origin. KEYS[1]: its snapshot, KEYS[2]: its back-off.
-- ARGV: 'load'; or 'save', the SHA-1 of what is to be replaced ('' for nothing), the new snapshot, milliseconds to keep it ('' for ever);
-- or 'hold', the same for the back-off.
-- The reply: whether it was written, the server's time (seconds, microseconds), the snapshot and the back-off as they were before.
--
-- A compare-and-set instead of WATCH: snapshots are merged by the caller (merged() in snapshot.py is the one place that can), and this
-- needs one round trip, no connection of its own, and works the same on a cluster.
local t = redis.call('TIME')
local kept, held = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
local done = 0
if ARGV[1] ~= 'load' then
  local key, before = KEYS[1], kept
  if ARGV[1] == 'hold' then key, before = KEYS[2], held end
  if (before and redis.sha1hex(before) or '') == ARGV[2] then
    if ARGV[4] == '' then redis.call('SET', key, ARGV[3]) else redis.call('SET', key, ARGV[3], 'PX', ARGV[4]) end
    done = 1
  end
end
return { done, t[1], t[2], kept, held }
