-- Cancel is taken until the new executor is there, which the agent decides.
local phase = obj.status ~= nil and obj.status.phase or "Pending"
local active = {Pending = true, Queued = true, Moving = true}
return {
  cancel = {disabled = not active[phase] or obj.spec.cancel == true},
}
