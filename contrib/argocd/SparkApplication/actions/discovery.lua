local suspended = obj.spec.suspend == true
return {
  suspend = {disabled = suspended},
  resume = {disabled = not suspended},
}
