// Package certs serves the webhooks' certificate, says which certificates callers need, and when this process may be called.
//
// cert-manager issues the certificate (manifests/base/certificates.yaml), and cainjector writes its CA into the webhook configurations.
// This package never creates, signs or stores a certificate. It watches the mounted files, so that a renewed certificate is served without a restart. It keeps a replica out of the webhook Service until the
// replica can answer.
package certs
