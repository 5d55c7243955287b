-- Sends one question again and again, for benchmarks/serve.py, and counts what comes back.
--
--     wrk -t1 -c16 -d8s -s benchmarks/serve.lua http://127.0.0.1:PORT -- TOKEN PATH BODY
--
-- PLACE in BODY becomes a number from 1 to 40: so many different questions.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  path, body, sent = args[2], args[3], 0
  answered, busy, other = 0, 0, 0
  headers = { ["Authorization"] = "Bearer " .. args[1], ["Content-Type"] = "application/json" }
end

function request()
  sent = sent + 1
  local text = body:gsub("PLACE", tostring(sent % 40 + 1))
  return wrk.format("POST", path, headers, text)
end

function response(status)
  if status == 200 then
    answered = answered + 1
  elseif status == 503 then
    busy = busy + 1
  else
    other = other + 1
  end
end

function done(summary, latency, requests)
  local found = { answered = 0, busy = 0, other = 0 }
  for _, thread in ipairs(threads) do
    for name in pairs(found) do
      found[name] = found[name] + thread:get(name)
    end
  end
  print(string.format(
    '{"seconds": %f, "answered": %d, "busy": %d, "other": %d, "p50": %f, "p99": %f}',
    summary.duration / 1e6, found.answered, found.busy, found.other,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
