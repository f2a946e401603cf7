{{- define "spark-drain.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimAll "-" -}}
{{- end }}

{{- define "spark-drain.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimAll "-" -}}
{{- else if contains (include "spark-drain.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimAll "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "spark-drain.name" .) | trunc 63 | trimAll "-" -}}
{{- end -}}
{{- end }}

{{- define "spark-drain.selectorLabels" -}}
app.kubernetes.io/name: {{ include "spark-drain.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "spark-drain.labels" -}}
{{ include "spark-drain.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimAll "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "spark-drain.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "spark-drain.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name must be set when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "spark-drain.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end }}

{{- define "spark-drain.operatorRules" -}}
- apiGroups: [sparkdrain.io]
  resources: [pipelinedrains, executorplacements]
  verbs: [get, list, watch, patch, delete{{ if .Values.nodeWatch.enabled }}, create{{ end }}]
- apiGroups: [sparkdrain.io]
  resources: [pipelinedrains/status, executorplacements/status]
  verbs: [update]
- apiGroups: [sparkoperator.k8s.io]
  resources: [sparkapplications]
  verbs: [get, list, watch, patch{{ if .Values.allowDelete }}, delete{{ end }}]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, update]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- if .Values.nodeWatch.enabled }}
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, create, patch, delete]
{{- end }}
{{- end }}

{{/*
Variables of an admission policy: whether a SparkApplication's spec is as it was, but for the fields `except`, and for what kubeflow's mutating
webhook makes of the request, which policies see: empty fields in every state, and with `defaults` also what SetSparkApplicationDefaults
gives an application that has no state yet.
*/}}
{{- define "spark-drain.sameSpec" -}}
{{- if .defaults -}}
- name: defaults
  expression: >-
    {"cores": dyn(1), "memory": dyn("1g"), "instances": dyn(1), "type": dyn("Never"), "onFailureRetryInterval": dyn(5),
    "onSubmissionFailureRetryInterval": dyn(5), "shuffleTrackingEnabled": dyn(true)}
{{ end -}}
- name: sameSpec
  expression: >-
    oldObject != null &&
    object.spec.all(key, key in {{ toJson .except }} || (key in oldObject.spec ? object.spec[key] == oldObject.spec[key]
    {{- if .defaults }} ||
    (key in ["driver", "executor", "restartPolicy", "dynamicAllocation"] &&
    object.spec[key].all(field, field in oldObject.spec[key] ? object.spec[key][field] == oldObject.spec[key][field] :
    field in variables.defaults && object.spec[key][field] == variables.defaults[field]) &&
    oldObject.spec[key].all(field, field in object.spec[key]))
    {{- end }} :
    key in ["deps", "restartPolicy"] && object.spec[key] == {}
    {{- if .defaults }} ||
    key == "mode" && object.spec.mode == "cluster" ||
    key == "restartPolicy" &&
    object.spec.restartPolicy.all(field, field in variables.defaults && object.spec.restartPolicy[field] == variables.defaults[field])
    {{- end }})) &&
    oldObject.spec.all(key, key in {{ toJson .except }} || key in object.spec)
{{- end }}
