{{/* The Service in front of a component. Takes root, component, name, port (of its pods, by name) and service (values). */}}
{{- define "horarium.service" }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  labels:
    {{- include "horarium.labels" . | nindent 4 }}
spec:
  type: {{ .service.type }}
  selector:
    {{- include "horarium.selector" . | nindent 4 }}
  ports:
    - name: {{ .port }}
      port: {{ .service.port }}
      targetPort: {{ .port }}
      protocol: TCP
{{- end }}

{{/* The Ingress in front of that Service, where one is asked for. Takes the same, with ingress (values) for service. */}}
{{- define "horarium.ingress" }}
{{- $own := . }}
{{- with .ingress }}
{{- if .enabled }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ $own.name }}
  labels:
    {{- include "horarium.labels" $own | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if .className }}
  ingressClassName: {{ .className }}
  {{- end }}
  {{- if .tlsSecretName }}
  tls:
    - hosts: [{{ .host | quote }}]
      secretName: {{ .tlsSecretName }}
  {{- end }}
  rules:
    - host: {{ .host | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ $own.name }}
                port:
                  name: {{ $own.port }}
{{- end }}
{{- end }}
{{- end }}
