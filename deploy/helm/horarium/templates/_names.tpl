{{/* The name that all objects begin with: the release's, with the chart's where it is not in it already. */}}
{{- define "horarium.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "horarium.instance" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of an object. Takes root and component. */}}
{{- define "horarium.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{ include "horarium.instance" .root }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* What selects the pods of a component. */}}
{{- define "horarium.selector" -}}
{{ include "horarium.instance" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* An image. Takes repository, tag and digest; a digest counts more. */}}
{{- define "horarium.image" -}}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository .tag }}
{{- end }}
{{- end }}

{{- define "horarium.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "horarium.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "horarium.claim" -}}
{{- default (printf "%s-content" (include "horarium.fullname" .)) .Values.content.existingClaim }}
{{- end }}
