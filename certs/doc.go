// Package certs serves the webhooks' certificate, says whose callers need, and when this process may be called.
//
// cert-manager issues the certificate (manifests/base/certificates.yaml) and cainjector writes its CA into the webhook
// configurations; this package never creates, signs or stores one. It watches the mounted files, so that a renewed
// certificate is served without a restart, and it keeps a replica out of the webhook Service until it can answer.
package certs
