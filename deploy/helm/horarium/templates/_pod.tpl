{{/*
The spec of a pod of ours. Takes root, component, image, args, resources, own, secrets, grace (seconds), restart, account, build,
content (whether it shares the volume of inputs and outputs), and probes (the name of what is defined below, "" for none).
*/}}
{{- define "horarium.pod" -}}
{{- $values := .root.Values -}}
{{- $temporal := ne .component "codec" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
restartPolicy: {{ .restart }}
terminationGracePeriodSeconds: {{ .grace }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- if eq .restart "Always" }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "horarium.selector" . | nindent 8 }}
{{- end }}
containers:
  - name: horarium
    image: {{ .image | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args: {{ toJson .args }}
    env:
      {{- include "horarium.env" . | nindent 6 }}
    {{- with include "horarium.envFrom" . | trim }}
    envFrom:
      {{- . | nindent 6 }}
    {{- end }}
    {{- if .probes }}
    {{- include .probes .root | nindent 4 }}
    {{- end }}
    resources:
      {{- toYaml .resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
    volumeMounts:
      - name: tmp
        mountPath: /tmp
      - name: data
        mountPath: /var/lib/horarium
      {{- if and $temporal $values.temporal.tls.enabled $values.temporal.tls.secretName }}
      - name: temporal-tls
        mountPath: /etc/horarium/temporal-tls
        readOnly: true
      {{- end }}
      {{- if and $temporal $values.temporal.config.secretName }}
      - name: temporal-config
        mountPath: /etc/horarium/temporal-config
        readOnly: true
      {{- end }}
      {{- if $values.payloadKeys.secretName }}
      - name: payload-keys
        mountPath: /etc/horarium/payload-keys
        readOnly: true
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  - name: data
    {{- if .content }}
    persistentVolumeClaim:
      claimName: {{ include "horarium.claim" .root }}
    {{- else }}
    emptyDir: {}
    {{- end }}
  {{- if and $temporal $values.temporal.tls.enabled $values.temporal.tls.secretName }}
  - name: temporal-tls
    secret:
      secretName: {{ $values.temporal.tls.secretName }}
      defaultMode: 0440
  {{- end }}
  {{- if and $temporal $values.temporal.config.secretName }}
  - name: temporal-config
    secret:
      secretName: {{ $values.temporal.config.secretName }}
      defaultMode: 0440
  {{- end }}
  {{- if $values.payloadKeys.secretName }}
  # Only the keys that are named: a pod does not start where one of them is not in the Secret.
  - name: payload-keys
    secret:
      secretName: {{ $values.payloadKeys.secretName }}
      defaultMode: 0440
      items:
        {{- range $values.payloadKeys.ids }}
        - {key: {{ . | quote }}, path: {{ . | quote }}}
        {{- end }}
  {{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The API says by itself whether it lives, and whether its catalog answers. */}}
{{- define "horarium.probes.api" -}}
ports:
  - name: http
    containerPort: 8080
    protocol: TCP
startupProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}

{{/* The codec server keeps nothing and asks nobody: if it answers, it is ready. */}}
{{- define "horarium.probes.codec" -}}
ports:
  - name: codec
    containerPort: 8234
    protocol: TCP
startupProbe:
  httpGet: {path: /healthz, port: codec}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: codec}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /healthz, port: codec}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}

{{/* The others end by themselves when a part of them does; that they still answer is seen at their metrics. */}}
{{- define "horarium.probes.metrics" -}}
ports:
  - name: metrics
    containerPort: {{ .Values.metrics.port }}
    protocol: TCP
startupProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 3
{{- end }}

{{/*
A Deployment. Takes what a pod does, and name, replicas ("" where something else scales it), and more (labels that select
beside the component's).
*/}}
{{- define "horarium.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  labels:
    {{- include "horarium.labels" . | nindent 4 }}
    {{- with .more }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- if ne (toString .replicas) "" }}
  replicas: {{ .replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
  selector:
    matchLabels:
      {{- include "horarium.selector" . | nindent 6 }}
      {{- with .more }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  template:
    metadata:
      # No more than what selects: a new chart alone is no reason to start the workers of an old build again.
      labels:
        {{- include "horarium.selector" . | nindent 8 }}
        {{- with .more }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .root.Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "horarium.pod" . | nindent 6 }}
{{- end }}
