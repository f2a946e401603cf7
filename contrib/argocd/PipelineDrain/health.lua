-- Health of a PipelineDrain in Argo CD: Healthy or Degraded only once the drain has ended, because a hook that is Degraded ends
-- the sync while the drain would go on. A drain that stalls ends by itself at its deadline, unless it is drained already.
local health = {status = "Progressing", message = "waiting for the operator of spark-drain"}
local status = obj.status
if status == nil or status.phase == nil then
  return health
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function holds(type)
  return conditions[type] ~= nil and conditions[type].status == "True"
end

local annotations = obj.metadata.annotations or {}
local hook = annotations["argocd.argoproj.io/hook"] ~= nil or annotations["helm.sh/hook"] ~= nil

health.message = status.phase
if status.message ~= nil and status.message ~= "" then
  health.message = status.phase .. ": " .. status.message
end
if hook and status.phase == "Planned" then
  health.status, health.message = "Degraded", "Planned only: nothing is drained. A hook needs another spec.execution than PlanOnly"
elseif holds("Finished") then
  health.status = holds("Succeeded") and "Healthy" or "Degraded"
elseif holds("Stalled") then
  health.message = status.phase .. ", stalled: " .. (conditions.Stalled.message or "")
elseif status.phase == "AwaitingApproval" and not hook then
  health.status = "Suspended"  -- not that of a hook: before a deletion Argo CD waits for hooks that are Progressing only
end
return health
