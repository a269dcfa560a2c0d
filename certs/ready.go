package certs

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

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
