{{- /* The labels of every object. make manifests leaves out those that are about Helm. */ -}}
{{- define "stayput.labels" -}}
app.kubernetes.io/part-of: stayput
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | replace "+" "_" | trunc 63 | trimAll "-_." | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The annotations of an object. The argument is a list of the root and of those that only this object has. */ -}}
{{- define "stayput.annotations" -}}
{{- with merge (dict) (index . 1) (default (dict) (index . 0).Values.commonAnnotations) -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Labels and annotations of an object that is not only in the chart. The argument is that of stayput.annotations. */ -}}
{{- define "stayput.metadata" -}}
labels:
  app.kubernetes.io/name: stayput
  {{- include "stayput.labels" (index . 0) | nindent 2 }}
{{- with include "stayput.annotations" . }}
{{ . }}
{{- end }}
{{- end }}

{{- /* cert-manager's cainjector copies the CA of the certificate into the webhook configurations. */ -}}
{{- define "stayput.webhookAnnotations" -}}
{{- $own := dict }}
{{- if include "stayput.certManager" . }}{{ $_ := set $own "cert-manager.io/inject-ca-from" (printf "%s/stayput-webhook" .Release.Namespace) }}{{ end }}
{{- merge $own (default (dict) .Values.webhook.annotations) | toYaml }}
{{- end }}

{{- /* Where the API server reaches a webhook. The argument is a list of the root and the path. */ -}}
{{- define "stayput.clientConfig" -}}
service: {name: stayput-webhook, namespace: {{ (index . 0).Release.Namespace }}, path: {{ index . 1 }}}
{{- with (index . 0).Values.certificates.caBundle }}
caBundle: {{ . }}
{{- end }}
{{- end }}

{{- /* The annotations of a hook's object. The argument is a list of the root, the hook and its weight. */ -}}
{{- define "stayput.hookAnnotations" -}}
{{- include "stayput.annotations" (list (index . 0) (dict "helm.sh/hook" (index . 1) "helm.sh/hook-weight" (index . 2) "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded")) }}
{{- end }}

{{- /* The image without its tag. What stands before its first "/" is a registry if it has a "." or ":", or is localhost. */ -}}
{{- define "stayput.repository" -}}
{{- $repository := .Values.image.repository }}
{{- with default (.Values.global).imageRegistry .Values.image.registry -}}
{{ . }}/{{ regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "" }}
{{- else -}}
{{ $repository }}
{{- end }}
{{- end }}

{{- define "stayput.image" -}}
{{- if .Values.image.digest -}}
{{ include "stayput.repository" . }}@{{ .Values.image.digest }}
{{- else -}}
{{ include "stayput.repository" . }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- /* The pull secrets of all pods, as a list in JSON. A secret may be given by its name alone. Empty: there is none. */ -}}
{{- define "stayput.pullSecrets" -}}
{{- $secrets := list }}
{{- range concat (default (list) .Values.imagePullSecrets) (default (list) (.Values.global).imagePullSecrets) }}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) }}
{{- end }}
{{- with $secrets }}{{ toJson . }}{{ end }}
{{- end }}

{{- define "stayput.serviceAccount" -}}
{{ default "stayput" .Values.serviceAccount.name }}
{{- end }}

{{- /* The managers' user name. */ -}}
{{- define "stayput.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stayput.serviceAccount" . }}
{{- end }}

{{- /* The flags of the managers and of the Job stayput-uninstall, as a list in JSON. A value that is the default makes no flag. */ -}}
{{- define "stayput.flags" -}}
{{- $flags := list }}
{{- with .Values.inPlaceAnnotations }}{{ $flags = append $flags (printf "--in-place-annotations=%s" (join "," .)) }}{{ end }}
{{- with .Values.restartAnnotations }}{{ $flags = append $flags (printf "--restart-annotations=%s" (join "," .)) }}{{ end }}
{{- with .Values.excludedNamespaces }}{{ $flags = append $flags (printf "--excluded-namespaces=%s" (join "," .)) }}{{ end }}
{{- if .Values.maxRestartingPods }}{{ $flags = append $flags (printf "--max-restarting-pods=%d" (int .Values.maxRestartingPods)) }}{{ end }}
{{- if .Values.maxRestartingPodsPerNode }}{{ $flags = append $flags (printf "--max-restarting-pods-per-node=%d" (int .Values.maxRestartingPodsPerNode)) }}{{ end }}
{{- range $key, $most := .Values.maxRestartingPodsPerTopology }}{{ $flags = append $flags (printf "--max-restarting-pods-per-topology=%s=%d" $key (int $most)) }}{{ end }}
{{- if ne (int .Values.webhook.port) 10250 }}{{ $flags = append $flags (printf "--webhook-port=%d" (int .Values.webhook.port)) }}{{ end }}
{{- if .Values.webhook.clientCAConfigMap }}{{ $flags = append $flags "--client-ca=/client-ca/ca.crt" }}{{ end }}
{{- /* In the network of the node, metrics and health are not served on all of the node's addresses. */ -}}
{{- if or .Values.hostNetwork (ne (int .Values.metrics.port) 8080) }}{{ $flags = append $flags (printf "--metrics-address=%s:%d" (ternary "[$(POD_IP)]" "" .Values.hostNetwork) (int .Values.metrics.port)) }}{{ end }}
{{- if or .Values.hostNetwork (ne (int .Values.health.port) 8081) }}{{ $flags = append $flags (printf "--health-address=%s:%d" (ternary "127.0.0.1" "" .Values.hostNetwork) (int .Values.health.port)) }}{{ end }}
{{- if ne (toString .Values.logLevel) "info" }}{{ $flags = append $flags (printf "--zap-log-level=%s" (toString .Values.logLevel)) }}{{ end }}
{{- if ne .Values.logEncoder "json" }}{{ $flags = append $flags (printf "--zap-encoder=%s" .Values.logEncoder) }}{{ end }}
{{- concat $flags .Values.extraArgs | toJson }}
{{- end }}

{{- /* Not empty if cert-manager issues the certificate. */ -}}
{{- define "stayput.certManager" -}}
{{- if not .Values.certificates.secretName }}true{{ end }}
{{- end }}

{{- /* Not empty if cert-manager issues the certificate by the release's own CA. */ -}}
{{- define "stayput.ownCA" -}}
{{- if and (include "stayput.certManager" .) (not .Values.certificates.issuer.name) }}true{{ end }}
{{- end }}

{{- define "stayput.issuer" -}}
{{- if include "stayput.ownCA" . -}}
kind: Issuer
name: stayput-ca
{{- else -}}
{{ toYaml .Values.certificates.issuer }}
{{- end }}
{{- end }}

{{- /* The pod spec of a hook, which runs one command of the image. The argument is a list of the root and the command's name. */ -}}
{{- define "stayput.hookPod" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 -}}
serviceAccountName: stayput-{{ $name }}
# With the managers' priority, the pod can be scheduled wherever a manager can.
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
restartPolicy: Never
{{- with include "stayput.pullSecrets" $root }}
imagePullSecrets:
  {{- . | nindent 2 }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: {{ $name }}
    image: {{ include "stayput.image" $root }}
    {{- with $root.Values.image.pullPolicy }}
    imagePullPolicy: {{ . }}
    {{- end }}
    args: {{ prepend (include "stayput.flags" $root | fromJsonArray) $name | toJson }}
    env:
      - name: POD_NAMESPACE
        valueFrom:
          fieldRef:
            fieldPath: metadata.namespace
      {{- with $root.Values.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    resources:
      requests:
        cpu: 50m
        memory: 64Mi
    {{- with $root.Values.securityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}

{{- /* What PodMonitor and ServiceMonitor have in common: how the managers are scraped. */ -}}
{{- define "stayput.scrape" -}}
port: metrics
interval: {{ .interval }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
