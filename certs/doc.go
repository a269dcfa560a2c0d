// Package certs serves the webhooks' certificate, and says which certificates callers need.
//
// cert-manager issues the certificate (manifests/base/certificates.yaml), and cainjector writes its CA into the webhook configurations.
// This package never creates, signs or stores a certificate. It watches the mounted files, so that a renewed certificate is served
// without a restart. Whether the certificate is still valid is one of the checks that make a manager ready.
package certs
