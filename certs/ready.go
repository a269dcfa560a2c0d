package certs

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Ready returns the readiness check of a replica: it has a certificate that is valid now, its webhook socket answers TLS, and every
// further check passes. The error names the first thing that is missing.
func Ready(source Source, server webhook.Server, further ...healthz.Checker) healthz.Checker {
	checks := append([]healthz.Checker{Loaded(source), server.StartedChecker()}, further...)
	return func(request *http.Request) error {
		for _, check := range checks {
			if err := check(request); err != nil {
				return err
			}
		}
		return nil
	}
}

// Loaded returns a check that a certificate is loaded and has not expired: API servers refuse an expired one.
func Loaded(source Source) healthz.Checker {
	return func(*http.Request) error {
		certificate, err := source.GetCertificate(nil)
		if err != nil {
			return err
		}
		if certificate == nil || certificate.Leaf == nil {
			return errors.New("no serving certificate is loaded")
		}
		if expiry := certificate.Leaf.NotAfter; time.Now().After(expiry) {
			return fmt.Errorf("the serving certificate expired at %s and was not renewed", expiry.Format(time.RFC3339))
		}
		return nil
	}
}
