-- One batch of one process for one partition of a crawl, applied atomically. changes.py has the request (ARGV[1]), step.py the reply.
--
-- KEYS[1] is the prefix `polite:{<crawl>:<partition>}:` of all keys. The other keys are not declared: their names depend on what
-- is stored. All have the prefix's hash tag, so they are in the slot of KEYS[1], which is what a cluster checks at each access.
-- Runs on Redis 7.0 and Valkey 7.2 or later.
--
-- Times are microseconds of this server's clock. Only durations leave it: cjson writes 14 digits, a time has 16.
--
--   m              hash    born, run, keyed, epoch, quiet, grace, last, starve, fence, num, nputs, waiting, done, refused, dropped, met
--   s, seq         hash    session -> when it ends; its last batch. In `seq` also `~session`: it has homes in `unnamed`; and
--                          `!session`: it was ended, and some of its homes are still to be freed
--   closed, alone  set     sessions that put no more; sessions of gates without a frontier
--   roomless       hash    session -> since when its batches have had no room for a home
--   h              hash    home -> owner:fence:since:free_at:clean:state
--   l              zset    homes that wait for an owner; score: from when they may be taken
--   held:<session> set     its homes
--   unnamed:<session> set  those of its homes that it has not named since it began to say what is `mine`
--   n:<session>    set     news: `home \n origin`, or `home \n \n origin`: the origins of the home that come after this one
--   w:<session>    set     its homes that others want
--   told:<session> set     what the last reply told of these two: `n:` or `w:`, and the entry
--   x:<home>       zset    all its origins that have tasks in `q`; score: from when. Missing: only `https://<home>` may have some
--   q:<origin>     zset    tasks that may be given out. By number: digest. By key: number, 14 digits, and digest
--   t:<origin>     hash    digest -> number:tries:key:json
--   o:<home>       hash    digest -> fence:origin, of tasks that a worker has
--   d:<origin>     set     digests of tasks that have ended
--   once           zset    digests of ended tasks that are not unique, which begin with `*`; score: when
--   idle           zset    origins without tasks; score: since when
--   later          zset    `t \n home \n origin \n digest`, `o \n home \n origin`; score: when they are ready
--   forget         zset    homes without tasks; score: when no delay or state of them is left to know
local P, a = KEYS[1], cjson.decode(ARGV[1])
local call, floor, max, min = redis.call, math.floor, math.max, math.min

local function clock()
  local time = call('TIME')
  return time[1] * 1000000 + time[2], string.match(call('INFO', 'server'), 'run_id:(%x+)')
end
local now, run = clock()

-- What one call does at most, so that others never wait long for the server: 150 units of work, of about 10 us each. The more a
-- batch brings (`cost`, see changes.py), the less else is done; the rest is for the next calls.
local work_left = max(30, 150 - a.cost)
local function work(units) work_left = work_left - units end
-- Octets of stored rows that are read; to read and to send 4,000 is a unit of work.
local octets_left = 250000
local function read_octets(count)
  octets_left = octets_left - count
  work(count / 4000)
end
local NEWS, PICKS, RECALLS, ENDS, OUTS = 100, 50, 100, 50, 64
local ROWS_OF_ORIGIN, ORIGINS_AT_ONCE, ROWS_AT_FIRST = 32, 8, 1
local ROW = 0.2
local SOON, DAY = 1000000, 86400000000

local function exact(number) return string.format('%.0f', number) end
local function given(value) return value ~= nil and value ~= cjson.null end
local NONE = {}
local function each(list) return ipairs(list or NONE) end

local function append(list, ...)
  for i = 1, select('#', ...) do list[#list + 1] = (select(i, ...)) end
end

-- Run a command with all entries of the list, if there are any.
local function call_all(command, key, list)
  if #list > 0 then return call(command, key, unpack(list)) end
  return 0
end

-- ---- The partition's own record: read once, written once.

local NUMBERS = { 'epoch', 'quiet', 'grace', 'last', 'starve', 'nputs', 'waiting', 'done', 'refused', 'dropped', 'met' }
local m, stored = {}, {}
local read = call('HMGET', P .. 'm', 'born', 'run', 'keyed', unpack(NUMBERS))
local born, last_run, keyed = read[1], read[2], read[3] == '1'
for i, name in ipairs(NUMBERS) do
  m[name] = tonumber(read[i + 3] or '0')
  stored[name] = m[name]
end

local function write_numbers()
  local changed = {}
  for _, name in ipairs(NUMBERS) do
    if m[name] ~= stored[name] then
      changed[#changed + 1] = name
      changed[#changed + 1] = exact(m[name])
    end
  end
  if #changed > 0 then call('HSET', P .. 'm', unpack(changed)) end
end

-- Reserve so many numbers; return the one before the first.
local function reserve(name, count) return call('HINCRBY', P .. 'm', name, count) - count end

-- ---- 1. Is it the crawl that the caller knows?

local emptied = not born and given(a.born)
if not born then
  if emptied and not a.gate_alone then return cjson.encode({ err = 'emptied' }) end
  born = a.newborn
  call('HSET', P .. 'm', 'born', born, 'run', run)
  last_run = run
  -- An earlier batch of this session got no reply: it may have met a crawl that was emptied since.
  if a.first and a.seq > 1 then m.quiet = max(m.quiet, now + a.lease) end
end
if emptied or (given(a.born) and a.born ~= born) then
  if not a.gate_alone then return cjson.encode({ err = 'other crawl' }) end
  -- The store was emptied, and what gates hold is known to them alone: nothing is given until all have said `mine`. An epoch that
  -- none of them can have seen makes them say it.
  m.quiet = max(m.quiet, now + a.lease)
  if m.epoch < 1e9 then
    m.epoch = floor(now / 1000000)
    -- Greater than any fence given before: a late leave of an older owner must not free what another has got since.
    reserve('fence', floor(now / 1000))
  end
end

-- Frontiers know whether the crawl has keys. A gate without one moves tasks whose time has come, too; one whose frontier was closed
-- puts tasks again that a failover lost.
if (not a.gate_alone or a.puts) and a.keyed ~= keyed then
  keyed = a.keyed
  call('HSET', P .. 'm', 'keyed', keyed and '1' or '0')
end

-- ---- 2. Another server, or the same one restarted: its last writes may be missing, so numbers given before may be unknown here.

if last_run ~= run then
  m.epoch, m.quiet = m.epoch + 1, now + a.lease
  call('HINCRBY', P .. 'm', 'fence', 1000000)
  -- Numbers after the last one known here are of puts that are lost. See `was_lost`. They go on from the time, above all numbers
  -- that a server gave which this one knows nothing of: two failovers in a row may return to data from before the first.
  local last = tonumber(call('HGET', P .. 'm', 'num') or '0')
  local from = max(last + 1000000, floor(now / 100))
  local kept = (call('HGET', P .. 'm', 'kept') or '') .. exact(last) .. '-' .. exact(from) .. ','
  if #kept > 1000 then kept = string.match(string.sub(kept, -1000), ',(.*)') end
  call('HSET', P .. 'm', 'num', exact(from), 'kept', kept, 'run', run)
end

-- ---- 3. A batch that its sender gave up and that comes late. And: has the store been away?

local last_seq, draining, ending = unpack(call('HMGET', P .. 'seq', a.session, '~' .. a.session, '!' .. a.session))
if a.seq <= tonumber(last_seq or '0') then
  write_numbers()
  return cjson.encode({ err = 'old' })
end
call('HSET', P .. 'seq', a.session, a.seq)
-- No batch came for a while: the store was away, not the processes. No session ends before all had the time to renew theirs.
-- A silence shorter than a lease gives no second grace soon after the first: if batches are lost all the time, a session that ended
-- without a word would never be missed.
local silence = m.last > 0 and now - m.last or 0
if silence > 2.5 * a.beat and (silence > a.lease or now > m.grace + a.lease) then m.grace = now + a.lease end
m.last = now

local is_quiet = m.quiet > now
local reply = {
  born = born, epoch = m.epoch, run = string.sub(run, -12), quiet = max(0, m.quiet - now),
  puts = {}, met = {}, gone = {}, taken = {}, recalls = {}, picked = {}, loads = {}, news = {}, given_up = {},
}

local closed, alone, roomless = {}, {}, {}
for _, session in ipairs(call('SMEMBERS', P .. 'closed')) do closed[session] = true end
for _, session in ipairs(call('SMEMBERS', P .. 'alone')) do alone[session] = true end
-- For how long.
local without = call('HGETALL', P .. 'roomless')
for i = 1, #without, 2 do roomless[without[i]] = now - tonumber(without[i + 1]) end

-- ---- Homes

local function parse_home(value)
  local owner, fence, since, free_at, clean, state = string.match(value, '^([^:]*):([^:]*):([^:]*):([^:]*):([^:]*):(.*)$')
  return {
    owner = owner ~= '' and owner or nil, fence = tonumber(fence), since = tonumber(since), free_at = tonumber(free_at),
    clean = clean == '1', state = state,
  }
end

-- Each row is read once; those that changed are written together, at the end.
local read_homes, rows, changed_homes = {}, {}, {}

local function read_rows(names)
  local missing = {}
  for _, home in ipairs(names) do
    if read_homes[home] == nil then
      read_homes[home] = false
      missing[#missing + 1] = home
    end
  end
  if #missing == 0 then return end
  for i, value in ipairs(call('HMGET', P .. 'h', unpack(missing))) do read_homes[missing[i]] = value end
end

local function home_row(home)
  if not rows[home] then
    if read_homes[home] == nil then read_homes[home] = call('HGET', P .. 'h', home) end
    rows[home] = read_homes[home] and parse_home(read_homes[home])
      or { fence = 0, since = 0, free_at = 0, clean = true, state = '' }
  end
  return rows[home]
end

local function write_home(home, row)
  rows[home], changed_homes[home] = row, true
end

local function delete_home(home)
  read_homes[home], rows[home], changed_homes[home] = false, nil, nil
  call('HDEL', P .. 'h', home)
end

local function write_homes()
  if not next(changed_homes) then return end
  local written = {}
  for home in pairs(changed_homes) do
    local row = rows[home]
    append(written, home, table.concat({
      row.owner or '', exact(row.fence), exact(row.since), exact(row.free_at), row.clean and '1' or '0', row.state,
    }, ':'))
  end
  call_all('HSET', P .. 'h', written)
end

do
  local names = {}
  for _, list in ipairs({ 'puts', 'outs', 'backs', 'leaves', 'postpones', 'holds', 'loads', 'mine' }) do
    for _, e in each(a[list]) do names[#names + 1] = e[1] end
  end
  for _, home in each(a.takes) do names[#names + 1] = home end
  read_rows(names)
end

-- The caller's home, if it holds it under this fence.
local function own(home, fence)
  local row = home_row(home)
  if row.owner == a.session and row.fence == fence then return row end
end

-- From when the home has something to do by its origins; nil: it has no tasks.
local function ready_from(home)
  local first = call('ZRANGE', P .. 'x:' .. home, 0, 0, 'WITHSCORES')
  if first[2] then return tonumber(first[2]) end
  if call('EXISTS', P .. 'q:https://' .. home) == 1 then return 0 end
end

-- A home without an owner waits in line if it has tasks. Otherwise it is forgotten when its delay and state are over.
local to_line = {}

local function line_up(home, row, from)
  from = from or ready_from(home)
  if from then
    append(to_line, exact(max(now, row.free_at, from)), home)
  elseif row.fence > 0 then
    local known_until = row.free_at
    if not row.clean or row.state ~= '' then known_until = max(known_until, row.since + DAY) end
    call('ZADD', P .. 'forget', exact(known_until), home)
  end
end

-- Before the line is read, or homes leave it.
local function write_line()
  if #to_line == 0 then return end
  call('ZADD', P .. 'l', 'LT', unpack(to_line))
  to_line = {}
end

local function leave_line(homes)
  write_line()
  call_all('ZREM', P .. 'l', homes)
end

local given_homes = {}

local function give(home, row, fence)
  if row.owner and row.owner ~= a.session then
    call('SREM', P .. 'held:' .. row.owner, home)
    call('SREM', P .. 'unnamed:' .. row.owner, home)
  end
  row.owner, row.fence = a.session, fence
  write_home(home, row)
  given_homes[#given_homes + 1] = home
end

local function write_given()
  if #given_homes == 0 then return end
  call_all('SADD', P .. 'held:' .. a.session, given_homes)
  leave_line(given_homes)
  given_homes = {}
end

-- What the new owner has to know. Until quiet is over, an owner that is not known here may have sent requests.
local function taken(home, row)
  local since, clean = row.since, row.clean
  if m.quiet > since then since, clean = m.quiet, false end
  local age = since > 0 and max(0, now - since) or -1
  return { home, row.fence, min(age, 1e13), clean, min(max(0, row.free_at - now), 1e13), row.state }
end

-- ---- Tasks

local function parse_task(value)
  local number, tries, key, text = string.match(value, '^([^:]*):([^:]*):([^:]*):(.*)$')
  return { number = tonumber(number), tries = tonumber(tries), key = key, text = text }
end

local function task_row(task)
  return string.format('%.0f:%.0f:', task.number, task.tries) .. task.key .. ':' .. task.text
end

local function write_task(origin, digest, task) call('HSET', P .. 't:' .. origin, digest, task_row(task)) end

local function member(digest, task)
  return keyed and string.format('%014.0f', task.number) .. digest or digest
end

local function due_member(home, origin, digest) return 't\n' .. home .. '\n' .. origin .. '\n' .. digest end

-- Tell the owner, or put the home in line. The caller knows what it puts itself, but for what it put in a batch without an answer:
-- after such a one it sends `mine`. `from`: from when the home has something to do, if that is known.
local function announce(home, origin, by_caller, from)
  local row = home_row(home)
  if not row.owner then
    line_up(home, row, from)
  elseif alone[row.owner] then
    -- A gate without a frontier holds it for its permits: tasks have their turn, too.
    call('SADD', P .. 'w:' .. row.owner, home)
  elseif row.owner ~= a.session or not by_caller or a.mine then
    call('SADD', P .. 'n:' .. row.owner, home .. '\n' .. origin)
  end
end

-- Note an origin with tasks, ready from `at` on. A home whose only origin is `https://<home>` needs no note while that is ready:
-- then return 0, from when the home has something to do.
local function note_origin(home, origin, at)
  local x, first = P .. 'x:' .. home, 'https://' .. home
  local noted = call('EXISTS', x) == 1
  if origin == first and not noted and not at then return 0 end
  if origin ~= first and not noted and call('EXISTS', P .. 'q:' .. first) == 1 then call('ZADD', x, 0, first) end
  if at then call('ZADD', x, exact(at), origin) else call('ZADD', x, 'NX', 0, origin) end
end

local function queue_score(task) return keyed and task.key ~= '' and task.key or exact(task.number) end

local function enqueue(home, origin, digest, task)
  call('ZADD', P .. 'q:' .. origin, queue_score(task), member(digest, task))
  return note_origin(home, origin)
end

-- Take a task out of the queue or out of `later`; return whether it was in the queue.
local function take_out(home, origin, digest, task)
  if call('ZREM', P .. 'q:' .. origin, member(digest, task)) == 1 then return true end
  call('ZREM', P .. 'later', due_member(home, origin, digest))
  return false
end

-- The origin's queue has become empty. An origin that is not noted was the only one.
local function leave_notes(home, origin)
  if call('ZREM', P .. 'x:' .. home, origin) == 0 or not ready_from(home) then leave_line({ home }) end
end

local function dequeue(home, origin, digest, task)
  if take_out(home, origin, digest, task) and call('EXISTS', P .. 'q:' .. origin) == 0 then leave_notes(home, origin) end
end

-- Finished URLs of an origin are remembered. Beyond the limit the origin without tasks for longest is forgotten; without one, a
-- URL of this. A task that is not unique is remembered for a while only: a put without a reply is repeated, and must not come twice.
local function remember(origin, digests)
  local once = {}
  for i = #digests, 1, -1 do
    if string.byte(digests[i]) == 42 then append(once, exact(now), table.remove(digests, i)) end
  end
  if #once > 0 then
    call('ZADD', P .. 'once', unpack(once))
    -- More than come in.
    call_all('ZREM', P .. 'once', call('ZRANGE', P .. 'once', '-inf', exact(now - 4 * a.lease), 'BYSCORE', 'LIMIT', 0, #once))
  end
  m.met = m.met + call_all('SADD', P .. 'd:' .. origin, digests)
  for _ = 1, #digests do
    if m.met <= a.max_done then return end
    local oldest = call('ZPOPMIN', P .. 'idle')[1]
    if oldest then
      m.met = m.met - call('SCARD', P .. 'd:' .. oldest)
      call('UNLINK', P .. 'd:' .. oldest)
    elseif call('SPOP', P .. 'd:' .. origin) then
      m.met = m.met - 1
    end
  end
end

-- The entries of a list from `first` on that have the same origin, their second value: return the last one.
local function last_of_origin(list, first)
  local origin, last = list[first][2], first
  while list[last + 1] and list[last + 1][2] == origin do last = last + 1 end
  return last
end

-- Tasks of one origin end: entries [home, origin, digest, how]. What they have in common is done once.
local function finish(list, first, last)
  local home, origin, digests, was_queued, was_there = list[first][1], list[first][2], {}, false, false
  local t = P .. 't:' .. origin
  for i = first, last do
    local digest, how = list[i][3], list[i][4]
    local value = keyed and call('HGET', t, digest)
    if value then work(#value / 4000) end
    if call('HDEL', t, digest) == 1 then
      was_queued = take_out(home, origin, digest, value and parse_task(value)) or was_queued
      m.waiting, m[how] = m.waiting - 1, m[how] + 1
      was_there = true
    end
    digests[#digests + 1] = digest
  end
  call('HDEL', P .. 'o:' .. home, unpack(digests))
  -- A queue has tasks.
  local left = call('EXISTS', t, P .. 'q:' .. origin)
  if was_queued and left < 2 then leave_notes(home, origin) end
  if left == 0 then
    if was_there then call('ZADD', P .. 'idle', exact(now), origin) else call('ZADD', P .. 'idle', 'NX', exact(now), origin) end
  end
  remember(origin, digests)
end

local function is_done(origin, digest)
  if string.byte(digest) == 42 then return call('ZSCORE', P .. 'once', digest) ~= false end
  return call('SISMEMBER', P .. 'd:' .. origin, digest) == 1
end

-- ---- 4. Tasks that ended. No fence: they were fetched, although other processes may own their homes by now.

local function each_origin(list, act)
  local first = 1
  while list and list[first] do
    local last = last_of_origin(list, first)
    act(list, first, last)
    first = last + 1
  end
end
each_origin(a.ended, finish)

-- ---- 5. Puts, questions whether a URL was met, and tasks that wait again.

local function wait_until_ready(home, origin, digest, task, ready_in)
  if given(ready_in) and ready_in > 0 then
    call('ZADD', P .. 'later', exact(now + ready_in), due_member(home, origin, digest))
  else
    announce(home, origin, true, enqueue(home, origin, digest, task))
  end
end

-- Whether a server that was replaced gave this number, and its successor did not know it.
local function was_lost(known)
  for last, from in string.gmatch(call('HGET', P .. 'm', 'kept') or '', '(%d+)-(%d+),') do
    if tonumber(last) < known and known <= tonumber(from) then return true end
  end
  return false
end

local number = a.puts and reserve('num', #a.puts) or 0

-- Which of these puts name a task that has ended; nil if it may be put again.
local function done_of(list, first, last)
  local origin, done, unique = list[first][2], {}, {}
  if first == last then
    if not list[first][6] then done[list[first][3]] = is_done(origin, list[first][3]) end
    return done
  end
  for i = first, last do
    local digest = list[i][3]
    if not list[i][6] then
      if string.byte(digest) == 42 then done[digest] = is_done(origin, digest) else unique[#unique + 1] = digest end
    end
  end
  if #unique > 0 then
    for i, found in ipairs(call('SMISMEMBER', P .. 'd:' .. origin, unpack(unique))) do done[unique[i]] = found == 1 end
  end
  return done
end

local to_later, no_more_idle = {}, {}

-- Put tasks of one origin. What they have in common is done once.
local function put_all(list, first, last)
  local home, origin, queued, new = list[first][1], list[first][2], {}, 0
  local t, done = P .. 't:' .. origin, done_of(list, first, last)
  for i = first, last do
    local _, _, digest, text, key, again, ready_in, known = unpack(list[i], 1, 8)
    local task = { number = given(known) and known or number + i, tries = 0, key = given(key) and string.format('%.17g', key) or '', text = text }
    -- A put that is told again after a failover: if it was not lost and waits no more, it has ended.
    local ended = given(known) and not was_lost(known) and call('HEXISTS', t, digest) == 0
    if ended or (not again and done[digest]) or call('HSETNX', t, digest, task_row(task)) == 0 then
      reply.puts[i] = 0
    else
      new, m.waiting, reply.puts[i] = new + 1, m.waiting + 1, task.number
      if given(ready_in) and ready_in > 0 then
        append(to_later, exact(now + ready_in), due_member(home, origin, digest))
      else
        append(queued, queue_score(task), member(digest, task))
      end
    end
  end
  if new > 0 then no_more_idle[#no_more_idle + 1] = origin end
  if #queued > 0 then
    call('ZADD', P .. 'q:' .. origin, unpack(queued))
    announce(home, origin, true, note_origin(home, origin))
  elseif a.mine and new <= last - first then
    announce(home, origin, true)
  end
end
each_origin(a.puts, put_all)
call_all('ZADD', P .. 'later', to_later)
call_all('ZREM', P .. 'idle', no_more_idle)
m.nputs = m.nputs + #(a.puts or {})

for i, e in each(a.met) do
  local _, origin, digest, again = unpack(e)
  reply.met[i] = call('HEXISTS', P .. 't:' .. origin, digest) == 1 or (not again and is_done(origin, digest))
end

local requeued = {}
for _, e in each(a.requeued) do
  local home, origin, digest, tries, ready_in = unpack(e, 1, 5)
  requeued[digest] = true
  local value = call('HGET', P .. 't:' .. origin, digest)
  if value then
    local task = parse_task(value)
    read_octets(#value)
    task.tries = max(task.tries, tries)
    write_task(origin, digest, task)
    call('HDEL', P .. 'o:' .. home, digest)
    -- One that waits in the queue, and is ready, keeps its place.
    if given(ready_in) or not call('ZSCORE', P .. 'q:' .. origin, member(digest, task)) then
      dequeue(home, origin, digest, task)
      wait_until_ready(home, origin, digest, task, ready_in)
    end
  end
end

-- ---- 6. The session. If its end has passed, but no other batch has begun to end it, it is renewed: none of its homes was taken.

local function answer()
  reply.waiting, reply.done, reply.refused, reply.dropped, reply.nputs = m.waiting, m.done, m.refused, m.dropped, m.nputs
  write_line()
  write_homes()
  write_numbers()
  return cjson.encode(reply)
end

local ends, is_known = call('HGETALL', P .. 's'), false
for i = 1, #ends, 2 do is_known = is_known or ends[i] == a.session end
if not a.first and not is_quiet and (not is_known or ending) then
  reply.lost = true
  call('HDEL', P .. 'seq', a.session)
  return answer()
end
-- A process that says goodbye is not renewed: what it does not leave is free when its lease is over.
if not a.bye or a.first then
  call('HSET', P .. 's', a.session, exact(now + a.lease))
  if ending then call('HDEL', P .. 'seq', '!' .. a.session) end
end
-- A process that has closed may open another frontier.
for set, was in pairs({ closed = closed, alone = alone }) do
  local is = a.gate_alone
  if set == 'closed' then is = a.closed or a.bye end
  if is ~= (was[a.session] or false) then call(is and 'SADD' or 'SREM', P .. set, a.session) end
  was[a.session] = is
end
-- A part of `mine` has no room, whatever the process has.
local in_part = a.mine and not a.mine_ends
if a.room > 0 and roomless[a.session] then
  call('HDEL', P .. 'roomless', a.session)
  roomless[a.session] = nil
elseif a.room == 0 and not roomless[a.session] and not in_part then
  call('HSET', P .. 'roomless', a.session, exact(now))
  roomless[a.session] = 0
end

-- ---- 7. Sessions that ended without a word. Their homes wait in line; what their workers had was tried.

local function forget_session(session)
  call('HDEL', P .. 's', session)
  call('HDEL', P .. 'seq', session, '~' .. session, '!' .. session)
  call('SREM', P .. 'closed', session)
  call('SREM', P .. 'alone', session)
  call('HDEL', P .. 'roomless', session)
  call(
    'UNLINK', P .. 'n:' .. session, P .. 'w:' .. session, P .. 'told:' .. session, P .. 'held:' .. session,
    P .. 'unnamed:' .. session
  )
end

local live, ended_sessions, ends_left = {}, {}, false
for i = 1, #ends, 2 do
  local end_at = tonumber(ends[i + 1])
  if ends[i] == a.session or end_at > now or is_quiet or m.grace > now then
    live[#live + 1] = ends[i]
  elseif not in_part then
    append(ended_sessions, ends[i], end_at)
  end
end
if not is_known and (a.first or not a.bye) then live[#live + 1] = a.session end

if #ended_sessions > 0 then
  local function count_try(home, origin, digest)
    local value = call('HGET', P .. 't:' .. origin, digest)
    if not value then return end
    local task = parse_task(value)
    read_octets(#value)
    task.tries = task.tries + 1
    if task.tries < a.max_tries then return write_task(origin, digest, task) end
    finish({ { home, origin, digest, 'dropped' } }, 1, 1)
    table.insert(reply.given_up, { origin, digest, task.number, task.tries, task.text })
  end

  -- Half of the work is for the ends of sessions.
  local work_after_ends = work_left / 2
  local function may_end() return work_left > work_after_ends and octets_left > 0 end

  -- Count the tries of a home whose owner is gone; return whether these were all.
  local function count_tries(home, fence)
    local outs, counted = call('HRANDFIELD', P .. 'o:' .. home, OUTS, 'WITHVALUES'), {}
    for i = 1, #outs, 2 do
      if #counted > 0 and not may_end() then break end
      local out_fence, origin = string.match(outs[i + 1], '^([^:]*):(.*)$')
      if tonumber(out_fence) == fence then count_try(home, origin, outs[i]) end
      counted[#counted + 1] = outs[i]
      work(1)
    end
    call_all('HDEL', P .. 'o:' .. home, counted)
    return 2 * #counted == #outs and #counted < OUTS
  end

  -- Free a home of a session that ended; return whether that is done.
  local function end_home(home, session, ended_at)
    local row = home_row(home)
    work(0.5)
    if row.owner ~= session then return true end
    if not count_tries(home, row.fence) then return false end
    work(0.5)
    row.owner, row.since, row.clean = nil, max(row.since, ended_at), false
    write_home(home, row)
    line_up(home, row)
    return true
  end

  -- Free the homes of a set; return whether that is done.
  local function end_homes(key, session, ended_at)
    while may_end() do
      local homes = call('SPOP', key, ENDS)
      if #homes == 0 then return true end
      read_rows(homes)
      for i, home in ipairs(homes) do
        if not may_end() or not end_home(home, session, ended_at) then
          call('SADD', key, unpack(homes, i))
          return false
        end
      end
    end
    return false
  end

  -- End one session. If it has more homes and tasks than one call may free, the next call goes on.
  local function end_session(session, ended_at)
    if end_homes(P .. 'held:' .. session, session, ended_at) and end_homes(P .. 'unnamed:' .. session, session, ended_at) then
      forget_session(session)
    else
      call('HSET', P .. 'seq', '!' .. session, 1)
      ends_left = true
    end
  end
  for i = 1, #ended_sessions, 2 do end_session(ended_sessions[i], ended_sessions[i + 1]) end
end

-- ---- 8. Homes that the caller leaves. A greater fence than the stored one: the write that gave it the home was lost.

-- Before the homes leave: an origin that is to wait must not stand in the line as one that is ready.
for _, e in each(a.postpones) do
  local home, fence, origin, ready_in = unpack(e)
  if (own(home, fence) or home_row(home).fence < fence) and call('EXISTS', P .. 'q:' .. origin) == 1 then
    note_origin(home, origin, now + ready_in)
    call('ZADD', P .. 'later', exact(now + ready_in), 'o\n' .. home .. '\n' .. origin)
  end
end

local left, left_outs = {}, {}
for _, e in each(a.leaves) do
  local home, fence, rest, state = unpack(e, 1, 4)
  local row = home_row(home)
  if row.fence < fence or (row.fence == fence and row.owner == a.session) then
    if row.owner == a.session then
      left[#left + 1] = home
    elseif row.owner then
      call('SREM', P .. 'held:' .. row.owner, home)
      call('SREM', P .. 'unnamed:' .. row.owner, home)
    end
    left_outs[#left_outs + 1] = P .. 'o:' .. home
    row = {
      fence = fence, since = now, free_at = max(row.free_at, now + rest), clean = true, state = given(state) and state or '',
    }
    write_home(home, row)
    line_up(home, row)
  end
end

call_all('SREM', P .. 'held:' .. a.session, left)
if draining then call_all('SREM', P .. 'unnamed:' .. a.session, left) end
if #left_outs > 0 then call('UNLINK', unpack(left_outs)) end

-- ---- 9. What the caller believes to hold, in parts. What it holds here and does not name, it does not know that it has: nothing
-- was sent. Until all that is free, it gets no homes.

local unnamed = P .. 'unnamed:' .. a.session
if a.mine then
  if a.mine_begins and call('EXISTS', P .. 'held:' .. a.session) == 1 then
    -- It begins again before all was free: what it named then, it may have left, in a write that was lost.
    if draining then call('SUNIONSTORE', P .. 'held:' .. a.session, P .. 'held:' .. a.session, unnamed) end
    call('RENAME', P .. 'held:' .. a.session, unnamed)
  end
  if a.mine_begins then
    draining = true
    call('HSET', P .. 'seq', '~' .. a.session, 1)
  end
  local named = {}
  for _, e in ipairs(a.mine) do
    local home, fence = e[1], e[2]
    local row = home_row(home)
    if row.fence == fence and row.owner == a.session then
      named[#named + 1] = home
    elseif row.fence < fence then
      give(home, row, fence)
      named[#named + 1] = home
    else
      table.insert(reply.gone, home)
    end
  end
  call_all('SREM', unnamed, named)
  call_all('SADD', P .. 'held:' .. a.session, named)
  write_given()
end
if draining and not in_part then
  local work_after = work_left / 2
  while work_left > work_after do
    local homes = call('SPOP', unnamed, ENDS)
    read_rows(homes)
    for _, home in ipairs(homes) do
      work(0.7)
      local row = home_row(home)
      if row.owner == a.session then
        row.owner = nil
        write_home(home, row)
        line_up(home, row)
      end
    end
    if #homes < ENDS then
      call('HDEL', P .. 'seq', '~' .. a.session)
      draining = false
      break
    end
  end
end

-- News and recalls are told once, and the reply that told them may have been lost: then they are told again.
local told = P .. 'told:' .. a.session
if a.mine_begins then
  local again = { ['n:'] = {}, ['w:'] = {} }
  for _, entry in ipairs(call('SMEMBERS', told)) do append(again[string.sub(entry, 1, 2)], string.sub(entry, 3)) end
  for kind, entries in pairs(again) do call_all('SADD', P .. kind .. a.session, entries) end
end
call('UNLINK', told)
if in_part then return answer() end
local told_now = {}

-- ---- 10. What happened in homes of the caller.

for _, e in each(a.outs) do
  local home, fence, origin, digest = unpack(e)
  -- A batch has no order between its lists: what waits again is not out.
  if not requeued[digest] and own(home, fence) and call('HEXISTS', P .. 't:' .. origin, digest) == 1 then
    call('HSET', P .. 'o:' .. home, digest, exact(fence) .. ':' .. origin)
  end
end
for _, e in each(a.backs) do
  if own(e[1], e[2]) then call('HDEL', P .. 'o:' .. e[1], e[4]) end
end
for _, e in each(a.holds) do
  local home, fence, rest, state = unpack(e, 1, 4)
  local row = home_row(home)
  -- A delay counts although another process may own the home by now: the host asked for it in a response.
  if row.fence > 0 then
    row.free_at = max(row.free_at, now + rest)
    if given(state) and own(home, fence) then row.state = state end
    write_home(home, row)
    if not row.owner then call('ZADD', P .. 'forget', 'XX', 'GT', exact(row.free_at), home) end
  end
end
-- ---- 11. Homes that are wanted for single permits: the caller's now, or their owners are asked to leave them.

for _, home in each(a.takes) do
  local row = home_row(home)
  if row.owner == a.session then
    -- Until quiet is over, it may have left this home, and another process taken it, in writes that the last server lost.
    if not is_quiet then
      if draining then call('SMOVE', P .. 'unnamed:' .. a.session, P .. 'held:' .. a.session, home) end
      table.insert(reply.taken, taken(home, row))
    end
  elseif row.owner then
    call('SADD', P .. 'w:' .. row.owner, home)
  elseif not is_quiet and not draining then
    give(home, row, reserve('fence', 1) + 1)
    table.insert(reply.taken, taken(home, row))
    -- It has left the line: a gate without a frontier gives it back after a while, another process fetches its tasks.
    if ready_from(home) then
      if a.gate_alone then
        call('SADD', P .. 'w:' .. a.session, home)
      else
        call('SADD', P .. 'n:' .. a.session, home .. '\n\n')
      end
    end
  end
end
write_given()

local wanted = call('SPOP', P .. 'w:' .. a.session, RECALLS)
read_rows(wanted)
for _, home in ipairs(wanted) do
  work(0.2)
  if home_row(home).owner == a.session then
    told_now[#told_now + 1] = 'w:' .. home
    table.insert(reply.recalls, home)
  end
end

-- ---- 12. What became ready by time; then rows for the caller's homes.

local function forget_home(home)
  local row = home_row(home)
  if not row.owner and row.free_at <= now and not ready_from(home) then delete_home(home) end
end

local function move_due(entry)
  local kind, home, origin, digest = string.match(entry, '^(%a)\n([^\n]*)\n([^\n]*)\n?(.*)$')
  if kind == 't' then
    local value = call('HGET', P .. 't:' .. origin, digest)
    if not value then return end
    work(#value / 4000)
    enqueue(home, origin, digest, parse_task(value))
  elseif call('EXISTS', P .. 'q:' .. origin) == 0 then
    return
  end
  announce(home, origin, false)
end

-- Take entries of a set whose time has come, and do what is due for each; return when the next is due.
local function each_due(name, share, act)
  local last, work_after, taken_out = max(0, floor(work_left * share)), work_left * (1 - share), {}
  local entries = call('ZRANGE', P .. name, 0, last, 'WITHSCORES')
  local next_at = #entries > 2 * last and now or nil
  for i = 1, #entries, 2 do
    local at = tonumber(entries[i + 1])
    if at > now or work_left <= work_after then
      next_at = at
      break
    end
    work(1)
    taken_out[#taken_out + 1] = entries[i]
    act(entries[i])
  end
  call_all('ZREM', P .. name, taken_out)
  return next_at
end
local later_at = each_due('later', 0.5, move_due)
each_due('forget', 0.1, forget_home)

-- Read the first rows of an origin. Those beyond come when it leaves memory and becomes active again.
local function first_rows(origin, limit)
  if octets_left <= 0 then return {} end
  local members = call('ZRANGE', P .. 'q:' .. origin, 0, limit - 1)
  if keyed then
    for i, name in ipairs(members) do members[i] = string.sub(name, 15) end
  end
  local found, before, count = {}, octets_left, ROWS_AT_FIRST
  while #found < #members and octets_left > 0 do
    local values = call('HMGET', P .. 't:' .. origin, unpack(members, #found + 1, min(#members, #found + count)))
    for _, value in ipairs(values) do
      local task = parse_task(value)
      read_octets(#value)
      found[#found + 1] = { members[#found + 1], task.number, task.tries, task.text }
    end
    -- As many more as are not too large, if they are like these.
    count = max(1, floor(octets_left * #found / (before - octets_left)))
  end
  return found
end

-- Rows of an origin that the caller did not ask for.
local function more_rows(origin)
  local found = first_rows(origin, max(1, min(ROWS_OF_ORIGIN, floor(work_left / ROW))))
  work(0.5 + ROW * #found)
  return found
end

local function may_read() return work_left > 0 and octets_left > 0 end

-- Read the next origins of a home that are ready, those after `after`; the ones beyond come with the next news.
local function next_origins(home, after)
  local x, found = P .. 'x:' .. home, {}
  local start = after and call('ZRANK', x, after)
  start = start and start + 1 or 0
  local origins = call('ZRANGE', x, start, start + ORIGINS_AT_ONCE, 'WITHSCORES')
  if #origins == 0 and not after then origins = { 'https://' .. home, 0 } end
  for i = 1, #origins, 2 do
    if tonumber(origins[i + 1]) > now then return found end
    if i > 2 * ORIGINS_AT_ONCE or (i > 1 and not may_read()) then
      call('SADD', P .. 'n:' .. a.session, home .. '\n\n' .. origins[i - 2])
      return found
    end
    local first = more_rows(origins[i])
    if #first > 0 then found[#found + 1] = { origins[i], first } end
  end
  return found
end

for i, e in each(a.loads) do
  local is_own = own(e[1], e[2])
  -- What this call may not read any more comes as news.
  if is_own and octets_left <= 0 then call('SADD', P .. 'n:' .. a.session, e[1] .. '\n' .. e[3]) end
  reply.loads[i] = is_own and first_rows(e[3], e[4]) or {}
end

local function read_news(entry)
  local home, origin, after = string.match(entry, '^([^\n]*)\n([^\n]*)\n?(.*)$')
  if home_row(home).owner ~= a.session then return end
  told_now[#told_now + 1] = 'n:' .. entry
  local origins = origin ~= '' and { { origin, more_rows(origin) } } or next_origins(home, after ~= '' and after or nil)
  for _, found in ipairs(origins) do
    if #found[2] > 0 then table.insert(reply.news, { home, found[1], found[2] }) end
  end
end

local news = call('SPOP', P .. 'n:' .. a.session, NEWS)
local news_homes, put_back = {}, {}
for i, entry in ipairs(news) do news_homes[i] = string.match(entry, '^[^\n]*') end
read_rows(news_homes)
for _, entry in ipairs(news) do
  if may_read() then
    work(0.3)
    read_news(entry)
  else
    put_back[#put_back + 1] = entry
  end
end
call_all('SADD', P .. 'n:' .. a.session, put_back)
call_all('SADD', told, told_now)

-- ---- 13. Homes from the line: the caller's fair share of them.

write_line()
-- A gate without a frontier takes nothing from the line and puts nothing: it has no share, and the end does not wait for it. A
-- process that holds nothing and has had no room for long, such as a producer, has no share either: its homes would wait in line.
local all_held, sharers, all_closed = 0, 0, true
local counts = {}
local function count_held(session)
  if not counts[session] then
    counts[session] = call('SCARD', P .. 'held:' .. session)
    if session == a.session and draining then counts[session] = counts[session] + call('SCARD', unnamed) end
  end
  return counts[session]
end
for _, session in ipairs(live) do
  if not alone[session] then
    local homes = count_held(session)
    if homes > 0 or (roomless[session] or 0) <= 2 * a.beat then sharers = sharers + 1 end
    all_held = all_held + homes
    all_closed = all_closed and closed[session] or false
  end
end
local held = count_held(a.session)
local inline = call('ZCOUNT', P .. 'l', '-inf', exact(now + SOON))
local share = (inline + all_held) / max(1, sharers)
reply.fair, reply.live, reply.all_closed = math.ceil(share), #live, all_closed

local picks = min(a.room, reply.fair - held, inline, PICKS)
if picks > 0 and not is_quiet and not draining and not a.bye then
  local fence = reserve('fence', picks)
  local first = call('ZRANGE', P .. 'l', '-inf', exact(now + SOON), 'BYSCORE', 'LIMIT', 0, picks)
  read_rows(first)
  for _, home in ipairs(first) do
    if not may_read() then break end
    work(0.5)
    local row, from = home_row(home), ready_from(home)
    if from and from <= now then
      fence, held, inline = fence + 1, held + 1, inline - 1
      give(home, row, fence)
      local entry = taken(home, row)
      entry[7] = next_origins(home, nil)
      table.insert(reply.picked, entry)
    end
  end
  write_given()
end
if a.room > #reply.picked and not is_quiet and inline == 0 and held < floor(share) then m.starve = now end
reply.held, reply.inline, reply.starving = held, inline, now - m.starve < 1500000

-- ---- 14. What comes next by time alone; and the session's end.

local function next_in()
  if ends_left or draining or #wanted == RECALLS or call('EXISTS', P .. 'n:' .. a.session) == 1 then return 0 end
  local at = {}
  if later_at then at[#at + 1] = later_at end
  local waiting = call('ZRANGE', P .. 'l', exact(now + SOON), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  if waiting[2] then at[#at + 1] = tonumber(waiting[2]) - SOON end
  if is_quiet then at[#at + 1] = m.quiet end
  if #at == 0 then return -1 end
  return min(max(0, min(unpack(at)) - now), 1e13)
end
reply.next_in = next_in()

if a.bye and held == 0 and not draining then forget_session(a.session) end
return answer()
