-- Health of an ExecutorPlacement in Argo CD: Healthy or Degraded only once it has ended.
local health = {status = "Progressing", message = "waiting for the operator of spark-drain"}
local status = obj.status
if status == nil or status.phase == nil then
  return health
end

local held = {}
for _, condition in ipairs(status.conditions or {}) do
  held[condition.type] = condition.status == "True" and condition or nil
end

health.message = status.phase
if held.Stalled ~= nil and held.Finished == nil then
  health.message = status.phase .. ", stalled: " .. (held.Stalled.message or "")
elseif status.message ~= nil and status.message ~= "" then
  health.message = status.phase .. ": " .. status.message
end
if held.Finished ~= nil then
  health.status = held.Succeeded ~= nil and "Healthy" or "Degraded"
end
return health
