package certs

import (
	"crypto/tls"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Watch loads tls.crt and tls.key from dir, where the Secret of a cert-manager Certificate is mounted. The watcher must be added to the
// manager, which then reads both files again whenever they change.
//
// The error says which file is missing or does not parse.
func Watch(dir string) (*certwatcher.CertWatcher, error) {
	watcher, err := certwatcher.New(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w; expected tls.crt and tls.key in %s, as cert-manager writes them", err, dir)
	}
	return watcher, nil
}

// Source has the certificate that is served.
type Source interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// TLS makes a server present the certificate. API servers speak TLS 1.3 since Kubernetes 1.19, and no other client calls.
func TLS(source Source) func(*tls.Config) {
	return func(config *tls.Config) {
		config.GetCertificate = source.GetCertificate
		config.MinVersion = tls.VersionTLS13
	}
}
