package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// rereadEvery is how often the file is read again.
const rereadEvery = 10 * time.Second

// Callers makes a server answer only callers whose certificate is signed by a CA of the file. A changed file is read again. If it can no
// longer be read, the CAs that were read before stay in force.
func Callers(file string) (func(*tls.Config), error) {
	known, err := authorities(file)
	if err != nil {
		return nil, fmt.Errorf("CA of the callers: %w", err)
	}
	c := &callers{file: file, known: known, read: time.Now()}
	return func(config *tls.Config) {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, known
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			current := config.Clone()
			current.ClientCAs = c.current()
			return current, nil
		}
	}, nil
}

type callers struct {
	file  string
	lock  sync.Mutex
	known *x509.CertPool
	read  time.Time
}

func (c *callers) current() *x509.CertPool {
	c.lock.Lock()
	defer c.lock.Unlock()
	if time.Since(c.read) < rereadEvery {
		return c.known
	}
	c.read = time.Now()
	if now, err := authorities(c.file); err == nil {
		c.known = now
	} else {
		log.Log.WithName("certs").Error(err, "Keeping the CA of the callers that was read before")
	}
	return c.known
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
