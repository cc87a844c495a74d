{{/*
The variables of a process. Takes root, component, own (a map of variables), and where builds are told apart build.
Names and meanings are those of deploy/README.md.
*/}}
{{- define "horarium.env" -}}
{{- $values := .root.Values -}}
{{- $component := .component -}}
- name: HORARIUM_ORGANIZATION
  value: {{ $values.organization | quote }}
- name: HORARIUM_ENVIRONMENT
  value: {{ $values.environment | quote }}
- name: HORARIUM_PUBLIC_URL
  value: {{ $values.publicUrl | quote }}
- name: HORARIUM_DATA
  value: /var/lib/horarium
{{- /* The codec server asks neither the catalog nor Temporal, and is told of neither. */}}
{{- if ne .component "codec" }}
- name: HORARIUM_CATALOG
  valueFrom:
    secretKeyRef:
      name: {{ $values.catalog.secretName }}
      key: {{ $values.catalog.secretKey }}
{{- if $values.temporal.address }}
- name: TEMPORAL_ADDRESS
  value: {{ $values.temporal.address | quote }}
{{- end }}
{{- if $values.temporal.namespace }}
- name: TEMPORAL_NAMESPACE
  value: {{ $values.temporal.namespace | quote }}
{{- end }}
{{- with $values.temporal.config }}
{{- if .secretName }}
- name: TEMPORAL_CONFIG_FILE
  value: /etc/horarium/temporal-config/{{ .secretKey }}
{{- if .profile }}
- name: TEMPORAL_PROFILE
  value: {{ .profile | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if $values.temporal.apiKey.secretName }}
- name: TEMPORAL_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ $values.temporal.apiKey.secretName }}
      key: {{ $values.temporal.apiKey.secretKey }}
{{- end }}
{{- with $values.temporal.tls }}
{{- if .enabled }}
- name: TEMPORAL_TLS
  value: "true"
{{- if .serverName }}
- name: TEMPORAL_TLS_SERVER_NAME
  value: {{ .serverName | quote }}
{{- end }}
{{- if and .secretName .clientCertificate }}
- name: TEMPORAL_TLS_CLIENT_CERT_PATH
  value: /etc/horarium/temporal-tls/tls.crt
- name: TEMPORAL_TLS_CLIENT_KEY_PATH
  value: /etc/horarium/temporal-tls/tls.key
{{- end }}
{{- if and .secretName .authority }}
- name: TEMPORAL_TLS_SERVER_CA_CERT_PATH
  value: /etc/horarium/temporal-tls/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if $values.payloadKeys.secretName }}
{{- $keys := list }}
{{- range $values.payloadKeys.ids }}
{{- $keys = append $keys (printf "%s=file:/etc/horarium/payload-keys/%s" . .) }}
{{- end }}
- name: HORARIUM_PAYLOAD_KEYS
  value: {{ join " " $keys | quote }}
{{- end }}
{{- with $values.ceilings.runsPerProfilePerMonth }}
- name: SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH
  value: {{ int64 . | quote }}
{{- end }}
{{- with $values.ceilings.totalRunsPerMonth }}
- name: SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH
  value: {{ int64 . | quote }}
{{- end }}
{{- with $values.eventRetentionDays }}
- name: SCHEDULER_EVENT_RETENTION_DAYS
  value: {{ int64 . | quote }}
{{- end }}
{{- if has .component (list "api" "codec") }}
{{- with $values.tokens }}
- name: HORARIUM_JWKS_URL
  value: {{ .jwksUrl | quote }}
{{- if .issuer }}
- name: HORARIUM_TOKEN_ISSUER
  value: {{ .issuer | quote }}
{{- end }}
{{- if .audience }}
- name: HORARIUM_TOKEN_AUDIENCE
  value: {{ .audience | quote }}
{{- end }}
{{- $scope := .requiredScope }}
{{- if eq $component "codec" }}
{{- $scope = default $scope $values.codec.requiredScope }}
{{- end }}
{{- if $scope }}
- name: HORARIUM_REQUIRED_SCOPE
  value: {{ $scope | quote }}
{{- end }}
{{- if .operatorScope }}
- name: HORARIUM_OPERATOR_SCOPE
  value: {{ .operatorScope | quote }}
{{- end }}
{{- if .requestsPerSecond }}
- name: HORARIUM_REQUESTS_PER_SECOND
  value: {{ int64 .requestsPerSecond | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if eq .component "api" }}
{{- with $values.signIn }}
{{- if .issuer }}
- name: HORARIUM_OIDC_ISSUER
  value: {{ .issuer | quote }}
- name: HORARIUM_OIDC_CLIENT_ID
  value: {{ .clientId | quote }}
{{- if .secretName }}
# Names the next one, which holds it.
- name: HORARIUM_OIDC_CLIENT_SECRET
  value: HORARIUM_SECRET_OIDC
- name: HORARIUM_SECRET_OIDC
  valueFrom:
    secretKeyRef:
      name: {{ .secretName }}
      key: {{ .secretKey }}
{{- end }}
{{- if .organization }}
- name: HORARIUM_OIDC_ORGANIZATION
  value: {{ .organization | quote }}
{{- end }}
{{- if .subjectClaim }}
- name: HORARIUM_OIDC_SUBJECT_CLAIM
  value: {{ .subjectClaim | quote }}
{{- end }}
{{- if .organizationClaim }}
- name: HORARIUM_OIDC_ORGANIZATION_CLAIM
  value: {{ .organizationClaim | quote }}
{{- end }}
{{- if .scopeClaim }}
- name: HORARIUM_OIDC_SCOPE_CLAIM
  value: {{ .scopeClaim | quote }}
{{- end }}
{{- if .scopes }}
- name: HORARIUM_OIDC_SCOPES
  value: {{ .scopes | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if and $values.temporalUi (has .component (list "api" "codec")) }}
- name: HORARIUM_TEMPORAL_UI
  value: {{ $values.temporalUi | quote }}
{{- end }}
{{- if has .component (list "schedules" "runs" "controller" "agents") }}
- name: HORARIUM_METRICS_HOST
  value: "0.0.0.0"
- name: HORARIUM_METRICS_PORT
  value: {{ int64 $values.metrics.port | quote }}
{{- end }}
{{- if and $values.versioning.deployment (or .build (eq .component "current")) }}
- name: HORARIUM_DEPLOYMENT
  value: {{ $values.versioning.deployment | quote }}
{{- end }}
{{- if and $values.versioning.deployment .build }}
- name: HORARIUM_BUILD_ID
  value: {{ .build | quote }}
{{- end }}
{{- range $name, $value := $values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $name, $value := .own }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* Secrets whose keys are variables. Takes root, component and secrets (more names). */}}
{{- define "horarium.envFrom" -}}
{{- if ne .component "codec" }}
{{- range .root.Values.envFromSecrets }}
- secretRef:
    name: {{ . }}
{{- end }}
{{- end }}
{{- if has .component (list "api" "runs" "controller") }}
{{- range .root.Values.destinationSecrets }}
- secretRef:
    name: {{ . }}
{{- end }}
{{- end }}
{{- range .secrets }}
- secretRef:
    name: {{ . }}
{{- end }}
{{- end }}
