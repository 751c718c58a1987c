{{- define "longrun.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "longrun" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-longrun" (.Release.Name | trunc 32 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "longrun.labels" -}}
{{ with .Values.commonLabels }}{{ toYaml . }}
{{ end -}}
app.kubernetes.io/name: longrun
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: longrun
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of pods in the controller's namespace that learners admit. manifests/install has the same, so that a release can take over. */}}
{{- define "longrun.controllerSelector" -}}
app.kubernetes.io/name: longrun
app.kubernetes.io/component: controller
{{- end -}}

{{/* list . ANNOTATIONS: the field `annotations` of an object with further annotations; empty if there are none. */}}
{{- define "longrun.annotations" -}}
{{- with merge (dict) (index . 1 | default dict) (index . 0).Values.commonAnnotations -}}
annotations: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "longrun.controllerLabels" -}}
{{ include "longrun.labels" . }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "longrun.controllerName" -}}
{{ include "longrun.fullname" . }}-controller
{{- end -}}

{{/*
Fails if another release has a controller in this namespace. Both would share a Lease, a metrics Service and two
PodDisruptionBudgets, which block every eviction. Selectors are immutable, so releases cannot get selectors of their own. The check
needs a cluster: `helm template` does not see one.
*/}}
{{- define "longrun.alone" -}}
{{- range (lookup "apps/v1" "Deployment" .Release.Namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $controller := and (eq (dig "app.kubernetes.io/name" "" $labels) "longrun") (eq (dig "app.kubernetes.io/component" "" $labels) "controller") -}}
{{- $own := or (eq .metadata.name (include "longrun.controllerName" $)) (eq (dig "app.kubernetes.io/instance" "" $labels) $.Release.Name) -}}
{{- if and $controller (not $own) -}}
{{- fail (printf "namespace %s has another longrun, Deployment %s: install this release into a namespace of its own, or uninstall that one first" $.Release.Namespace .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "longrun.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "longrun.controllerName" .) -}}
{{- else -}}
{{- required "serviceAccount.create is false: name an account that is there in serviceAccount.name" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* list . "controller". A name without a registry would be a name of Docker Hub, where anybody can publish it. */}}
{{- define "longrun.image" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $image := index $root.Values.images $name -}}
{{- if not (or $root.Values.images.registry (regexMatch "^(localhost|[^/]*[.:][^/]*)/" $image.repository)) -}}
{{- fail (printf "longrun publishes no images: build them, push them to a registry of yours (manifests/README.md) and set images.registry, for example --set images.registry=registry.example.com/ml; or give images.%s.repository with its registry" $name) -}}
{{- end -}}
{{- with $root.Values.images.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest -}}
@{{ $image.digest }}
{{- else -}}
:{{ $image.tag | default $root.Values.images.tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Namespaces that are served, as a JSON list; empty: all. */}}
{{- define "longrun.namespaces" -}}
{{- if eq .Values.watch.scope "cluster" -}}
{{- if or .Values.watch.namespaces .Values.watch.createNamespaces -}}
{{- fail "watch.namespaces and watch.createNamespaces mean nothing while watch.scope is cluster: set it to namespaces, or leave them out" -}}
{{- end -}}
[]
{{- else -}}
{{- .Values.watch.namespaces | default (list .Release.Namespace) | uniq | toJson -}}
{{- end -}}
{{- end -}}

{{/* The served namespaces, as a text for people. */}}
{{- define "longrun.served" -}}
{{- $namespaces := include "longrun.namespaces" . | fromJsonArray -}}
{{- if empty $namespaces -}}
all namespaces
{{- else -}}
namespace{{ if gt (len $namespaces) 1 }}s{{ end }} {{ join ", " $namespaces }}
{{- end -}}
{{- end -}}

{{- define "longrun.testNamespace" -}}
{{- $namespaces := include "longrun.namespaces" . | fromJsonArray -}}
{{- $named := .Values.test.namespace -}}
{{- if and $named $namespaces (not (has $named $namespaces)) -}}
{{- fail (printf "test.namespace is %s, which the controller does not serve (%s): name one of these, or leave it out" $named (include "longrun.served" .)) -}}
{{- else if $named -}}
{{- $named -}}
{{- else if or (empty $namespaces) (has .Release.Namespace $namespaces) -}}
{{- .Release.Namespace -}}
{{- else -}}
{{- first $namespaces -}}
{{- end -}}
{{- end -}}

{{- define "longrun.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* All resources of the pods of `helm test` and `helm uninstall`, for namespaces with a quota. Such a pod took 180 MB at its start. */}}
{{- define "longrun.hookResources" -}}
requests: { cpu: 50m, memory: 192Mi }
limits: { cpu: "1", memory: 512Mi }
{{- end -}}

{{- define "longrun.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Placement that controller, test and hook pods share. */}}
{{- define "longrun.podPlacement" -}}
{{- with .Values.controller.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.controller.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.controller.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Placement of test and hook pods. Unlike the controller's replicas, they have no anti-affinity. */}}
{{- define "longrun.hookPlacement" -}}
{{- include "longrun.podPlacement" . }}
{{- with .Values.controller.affinity.nodeAffinity }}
affinity:
  nodeAffinity: {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{/* Spec of the TrainingRuntime of runs that name none; may be empty. */}}
{{- define "longrun.defaultRuntimeSpec" -}}
{{- if .Values.defaultRuntime.create }}{{ include "longrun.runtimeValues" . }}{{ end -}}
{{- end -}}

{{/* Values for runs that nothing uses because defaultRuntime.create is false, as a text for people; may be empty. */}}
{{- define "longrun.unusedDefaults" -}}
{{- if not .Values.defaultRuntime.create -}}
{{- $spec := include "longrun.runtimeValues" . | fromYaml | default dict -}}
{{- if $spec -}}
the values for the default runtime (spec.{{ keys $spec | sortAlpha | join ", spec." }})
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the values say about all runs, as the spec of a TrainingRuntime; may be empty. */}}
{{- define "longrun.runtimeValues" -}}
{{- $v := .Values -}}
{{- $fullname := include "longrun.fullname" . -}}
{{- $learnerSpec := dict -}}
{{- $actorSpec := dict -}}
{{- $learner := dict -}}
{{- $actors := dict -}}
{{- $nodeSelector := $v.runs.learner.nodeSelector -}}
{{- $tolerations := $v.runs.learner.tolerations -}}
{{- with $v.runs.learner.resources }}{{ $_ := set $learner "resources" . }}{{ end -}}
{{- if $v.gpu.enabled -}}
{{- $resources := deepCopy $v.runs.learner.resources -}}
{{- $limits := merge (dict $v.gpu.resourceName 1) (dig "limits" dict $resources) -}}
{{- $_ := set $resources "limits" $limits -}}
{{- $_ := set $learner "resources" $resources -}}
{{- $nodeSelector = merge dict $v.runs.learner.nodeSelector $v.gpu.nodeSelector -}}
{{- $tolerations = concat $v.runs.learner.tolerations $v.gpu.tolerations -}}
{{- with $v.gpu.runtimeClassName }}{{ $_ := set $learnerSpec "runtimeClassName" . }}{{ end -}}
{{- end -}}
{{- with $nodeSelector }}{{ $_ := set $learnerSpec "nodeSelector" . }}{{ end -}}
{{- with $tolerations }}{{ $_ := set $learnerSpec "tolerations" . }}{{ end -}}
{{- with $v.runs.actors.nodeSelector }}{{ $_ := set $actorSpec "nodeSelector" . }}{{ end -}}
{{- with $v.runs.actors.tolerations }}{{ $_ := set $actorSpec "tolerations" . }}{{ end -}}
{{- $learnerClass := $v.runs.learner.priorityClassName -}}
{{- $actorClass := $v.runs.actors.priorityClassName -}}
{{- if $v.priorityClasses.create -}}
{{- $learnerClass = $learnerClass | default (printf "%s-learner" $fullname) -}}
{{- $actorClass = $actorClass | default (printf "%s-actor" $fullname) -}}
{{- end -}}
{{- with $learnerClass }}{{ $_ := set $learnerSpec "priorityClassName" . }}{{ end -}}
{{- with $actorClass }}{{ $_ := set $actorSpec "priorityClassName" . }}{{ end -}}
{{- if $v.images.pullSecrets -}}
{{- $secrets := list -}}
{{- range $v.images.pullSecrets }}{{ $secrets = append $secrets (dict "name" .) }}{{ end -}}
{{- $_ := set $learnerSpec "imagePullSecrets" $secrets -}}
{{- $_ := set $actorSpec "imagePullSecrets" $secrets -}}
{{- end -}}
{{- $learnerTemplate := dict -}}
{{- $actorTemplate := dict -}}
{{- with $v.runs.learner.podAnnotations }}{{ $_ := set $learnerTemplate "metadata" (dict "annotations" .) }}{{ end -}}
{{- with $v.runs.actors.podAnnotations }}{{ $_ := set $actorTemplate "metadata" (dict "annotations" .) }}{{ end -}}
{{- with $learnerSpec }}{{ $_ := set $learnerTemplate "spec" . }}{{ end -}}
{{- with $actorSpec }}{{ $_ := set $actorTemplate "spec" . }}{{ end -}}
{{- with $learnerTemplate }}{{ $_ := set $learner "podTemplate" . }}{{ end -}}
{{- with $actorTemplate }}{{ $_ := set $actors "podTemplate" . }}{{ end -}}
{{- with $v.runs.storageClassName }}{{ $_ := set $learner "storage" (dict "className" .) }}{{ end -}}
{{- with $v.runs.actors.resources }}{{ $_ := set $actors "resources" . }}{{ end -}}
{{- with $v.runs.actors.sandboxResources }}{{ $_ := set $actors "sandboxResources" . }}{{ end -}}
{{- with $v.runs.actors.runtimeClassName }}{{ $_ := set $actors "runtimeClassName" . }}{{ end -}}
{{- $defaults := dict -}}
{{- with $v.kueue.queueName }}{{ $_ := set $defaults "queueName" . }}{{ end -}}
{{- $inherited := dict -}}
{{- with $v.commonLabels }}{{ $_ := set $inherited "labels" . }}{{ end -}}
{{- with $v.commonAnnotations }}{{ $_ := set $inherited "annotations" . }}{{ end -}}
{{- with $inherited }}{{ $_ := set $defaults "inheritedMetadata" . }}{{ end -}}
{{- with $v.runs.env }}{{ $_ := set $defaults "env" . }}{{ end -}}
{{- with $v.caBundle }}
{{- if .configMap }}{{ $_ := set $defaults "caBundle" (dict "configMap" (dict "name" .configMap "key" .key)) }}{{ end -}}
{{- end -}}
{{- with $learner }}{{ $_ := set $defaults "learner" . }}{{ end -}}
{{- with $actors }}{{ $_ := set $defaults "actors" . }}{{ end -}}
{{- $defaults = merge (deepCopy $v.defaultRuntime.spec) $defaults -}}
{{- if $defaults }}{{ toYaml $defaults }}{{ end -}}
{{- end -}}

{{/* Name of the TrainingRuntime of runs that name none; may be empty. */}}
{{- define "longrun.defaultRuntime" -}}
{{- if include "longrun.defaultRuntimeSpec" . -}}
{{- .Values.defaultRuntime.name | default (include "longrun.fullname" .) -}}
{{- else if not .Values.defaultRuntime.create -}}
{{- .Values.defaultRuntime.name -}}
{{- end -}}
{{- end -}}

{{/* list . "metrics.serviceMonitor.enabled": fails with one line if the cluster lacks prometheus-operator. */}}
{{- define "longrun.needsPrometheusOperator" -}}
{{- $root := index . 0 -}}
{{- if not ($root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
{{- fail (printf "%s is true, but the cluster does not serve monitoring.coreos.com/v1: install prometheus-operator first, or set it to false (helm template: --api-versions monitoring.coreos.com/v1)" (index . 1)) -}}
{{- end -}}
{{- end -}}

{{/* Not empty if the controller works with Kueue. */}}
{{- define "longrun.kueue" -}}
{{- if .Values.kueue.enabled -}}
{{- if not (.Capabilities.APIVersions.Has "kueue.x-k8s.io/v1beta2") -}}
{{- fail "kueue.enabled is true, but the cluster does not serve kueue.x-k8s.io/v1beta2: install Kueue >= 0.15 first, or set it to false (helm template: --api-versions kueue.x-k8s.io/v1beta2)" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{/* list . "test" -1: labels and annotations of a hook, which Helm creates in the order of the number. */}}
{{- define "longrun.hookMetadata" }}
{{- $hook := index . 1 }}
  labels: {{- include "longrun.labels" (index . 0) | nindent 4 }}
{{- $policy := printf "before-hook-creation,hook-succeeded%s" (ternary "" ",hook-failed" (eq $hook "test")) }}
{{- $own := dict "helm.sh/hook" $hook "helm.sh/hook-weight" (index . 2 | toString) "helm.sh/hook-delete-policy" $policy }}
  {{- include "longrun.annotations" (list (index . 0) $own) | nindent 2 }}
{{- end -}}

{{/* DNS servers that pods may ask. The defaults are those of controller/operator/desired/dns.ts. */}}
{{- define "longrun.dns" }}
{{- with .Values.networkPolicy.dns }}
to:
  {{- if .to }}{{ toYaml .to | nindent 2 }}{{ else }}
  - namespaceSelector: {}
    podSelector:
      matchExpressions:
        - { key: k8s-app, operator: In, values: [kube-dns, node-local-dns, coredns] }
  - namespaceSelector: {}
    podSelector:
      matchLabels: { app.kubernetes.io/name: coredns }
  - namespaceSelector: {}
    podSelector:
      matchExpressions:
        - { key: dns.operator.openshift.io/daemonset-dns, operator: Exists }
  - ipBlock: { cidr: 169.254.0.0/16 }
  {{- end }}
ports: {{ .ports | default (list 53 5353) | toJson }}
{{- end }}
{{- end }}
