-- Health of kubeflow's SparkApplication in Argo CD, in place of the script that Argo CD brings: that one does not know SUSPENDING,
-- SUSPENDED and RESUMING, and takes an application with one executor more than `instances` for one that is still starting.
local function result(status, message)
  return {status = status, message = message}
end

local spec = obj.spec or {}
local application = obj.status ~= nil and obj.status.applicationState or {}
local state = application.state or ""
local failure = application.errorMessage
if failure == "" then
  failure = nil
end

local function conf(name)
  return spec.sparkConf ~= nil and spec.sparkConf[name] or nil
end

-- How many executors make the application whole; with dynamic allocation Spark decides above the minimum.
local function wanted_executors()
  local dynamic = spec.dynamicAllocation or {}
  if dynamic.enabled or conf("spark.dynamicAllocation.enabled") == "true" then
    return dynamic.minExecutors or tonumber(conf("spark.dynamicAllocation.minExecutors")) or 0
  end
  if conf("spark.streaming.dynamicAllocation.enabled") == "true" then
    return tonumber(conf("spark.streaming.dynamicAllocation.minExecutors")) or 0
  end
  local executor = spec.executor or {}
  return executor.instances or tonumber(conf("spark.executor.instances")) or 1
end

local function running_executors()
  local running = 0
  for _, executor in pairs(obj.status.executorState or {}) do
    if executor == "RUNNING" then
      running = running + 1
    end
  end
  return running
end

if state == "RUNNING" then
  local running, wanted = running_executors(), wanted_executors()
  if running < wanted then
    return result("Progressing", running .. " of " .. wanted .. " executors are running")
  end
  return result("Healthy", "the driver and " .. running .. " executors are running")
end
if state == "SUSPENDED" then
  if not spec.suspend then
    return result("Progressing", "suspended; it is about to be submitted again")
  end
  return result("Suspended", "suspended: its pods are gone or about to end")
end
if state == "COMPLETED" then
  return result("Healthy", "completed")
end

local messages = {
  [""] = "waiting to be submitted",
  SUBMITTED = "submitted; the driver is starting",
  PENDING_RERUN = "about to be submitted again",
  INVALIDATING = "its specification was changed: the old driver is being deleted",
  SUCCEEDING = "the driver has succeeded; the executors are ending",
  SUSPENDING = "being suspended: its pods are terminating",
  RESUMING = "being submitted again",
  UNKNOWN = "the state of the driver is not known, perhaps because its node does not answer",
}
if messages[state] ~= nil then
  return result("Progressing", messages[state])
end
if state == "FAILED" or state == "FAILING" or state == "SUBMISSION_FAILED" then
  return result("Degraded", failure or "failed (state " .. state .. ")")
end
return result("Unknown", "state " .. state .. " is not known to this script")
