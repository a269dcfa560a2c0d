package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Callers makes a server answer only callers whose certificate is signed by a CA of the file. The file is read with each handshake. If it
// can no longer be read, the CAs that were read before stay in force.
func Callers(file string) (func(*tls.Config), error) {
	known, err := authorities(file)
	if err != nil {
		return nil, fmt.Errorf("CA of the callers: %w", err)
	}
	var latest atomic.Pointer[x509.CertPool]
	latest.Store(known)
	return func(config *tls.Config) {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, known
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if now, err := authorities(file); err == nil {
				latest.Store(now)
			} else {
				log.Log.WithName("certs").V(1).Info("Keeping the CA of the callers that was read before", "error", err.Error())
			}
			current := config.Clone()
			current.ClientCAs = latest.Load()
			return current, nil
		}
	}, nil
}

func authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}
