-- Health of a TrainingRun for Argo CD: the value of resource.customizations.health.longrun.dev_TrainingRun in the ConfigMap argocd-cm.
local status = obj.status or {}
local seen = status.observedGeneration
if seen == nil or seen ~= obj.metadata.generation then
  return { status = "Progressing", message = "the controller has not seen this version of the run yet" }
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local function is(name, wanted)
  local condition = conditions[name]
  return condition ~= nil and condition.status == wanted
end
local function health(state, name)
  return { status = state, message = conditions[name].message }
end

if is("Stalled", "True") then
  return health("Degraded", "Stalled")
end
if is("Succeeded", "True") then
  return health("Healthy", "Succeeded")
end
if is("Admitted", "False") then
  return health("Suspended", "Admitted")
end
if is("Suspended", "True") then
  return health("Suspended", "Suspended")
end
if is("Ready", "True") then
  return health("Healthy", "Ready")
end
if conditions["Ready"] ~= nil then
  return health("Progressing", "Ready")
end
return { status = "Progressing", message = "the run begins" }
