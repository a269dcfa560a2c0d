// Package configuration decides when the containers of a workload restart because configuration that they use has changed: ConfigMaps, and
// Certificates of cert-manager. Users ask for it with the annotation inplace.AnnotationRestartOnChange of the workload.
//
// The restart is an edit of the template, as that of `kubectl rollout restart`: of inplace.AnnotationConfiguration, which every workload
// may change in place. So pacing, drain, status, history and undo are those of any update, and the edit survives Stayput.
//
// What was seen last is a Record in the annotation of that name on the workload itself. One write changes both, so a leader that is
// killed leaves nothing half-way, and two leaders never restart for the same change. A workload without a Record gets one without a
// restart. Only sources that are in both Records count as changed: a template that refers to one more ConfigMap has new pods already.
//
// A ConfigMap's version is its resourceVersion. A Certificate's is status.revision, which cert-manager raises after it has written the
// Secret. So Stayput reads neither the data of ConfigMaps, nor Secrets.
package configuration
