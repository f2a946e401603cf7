-- Approve is for a plan that waits for it; cancel is taken until the first flush.
local phase = obj.status ~= nil and obj.status.phase or "Pending"
local withdrawable = {Pending = true, AwaitingApproval = true, Acknowledged = true, Stopping = true}
return {
  approve = {disabled = phase ~= "AwaitingApproval" or obj.spec.approved == true},
  cancel = {disabled = not withdrawable[phase] or obj.spec.cancel == true},
}
