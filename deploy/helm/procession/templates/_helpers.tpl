{{- define "procession.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "procession.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "procession.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "procession.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "procession.selectorLabels" -}}
app.kubernetes.io/name: {{ include "procession.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "procession.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "procession.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "procession.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "procession.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "procession.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* What `serve` and `migrate` need to reach the database, and the settings. */}}
{{- define "procession.env" -}}
- name: PROCESSION_CONFIG
  value: /etc/procession/procession.toml
- name: PROCESSION_DB
  valueFrom:
    secretKeyRef:
      name: {{ required "database.existingSecret: name a Secret with the URL of the database (and its password)" .Values.database.existingSecret | quote }}
      key: {{ .Values.database.urlKey | quote }}
{{- if .Values.database.passwordKey }}
- name: PROCESSION_DB_PASSWORD_FILE
  value: /run/secrets/procession/db-password
{{- end }}
{{- if .Values.secretKey.existingSecret }}
- name: PROCESSION_SECRET_KEY_FILE
  value: /run/secrets/procession/secret-key
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "procession.volumeMounts" -}}
- name: config
  mountPath: /etc/procession/procession.toml
  subPath: procession.toml
  readOnly: true
{{- if or .Values.database.passwordKey .Values.secretKey.existingSecret }}
- name: own-secrets
  mountPath: /run/secrets/procession
  readOnly: true
{{- end }}
{{- if .Values.jobSecrets.existingSecret }}
- name: job-secrets
  mountPath: {{ .Values.jobSecrets.mountPath | quote }}
  readOnly: true
{{- end }}
- name: work
  mountPath: /var/lib/procession
- name: tmp
  mountPath: /tmp
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
