package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/stayput/stayput/e2e/cluster/internal/layout"
	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

// validity is longer than any cluster lives.
const validity = 10 * 365 * 24 * time.Hour

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// certificate describes a certificate to be issued, for clients and for servers at hosts and ips.
type certificate struct {
	name    string
	subject pkix.Name
	hosts   []string
	ips     []net.IP
}

// ensureAuthority reads or makes the self-signed authority in the files name.crt and name.key.
func ensureAuthority(dir layout.Dir, file, commonName string) (*authority, error) {
	template := &x509.Certificate{
		Subject:               name(commonName),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	pair, err := ensurePair(dir, file, func(key crypto.Signer) ([]byte, error) {
		return sign(template, template, key.Public(), key)
	})
	if err != nil {
		return nil, err
	}
	return &authority{certificate: pair.Leaf, key: pair.PrivateKey.(crypto.Signer)}, nil
}

// ensure issues the certificate if it does not exist.
func (a *authority) ensure(dir layout.Dir, wanted certificate) error {
	template := &x509.Certificate{
		Subject:     wanted.subject,
		DNSNames:    wanted.hosts,
		IPAddresses: wanted.ips,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	_, err := ensurePair(dir, wanted.name, func(key crypto.Signer) ([]byte, error) {
		return sign(template, a.certificate, key.Public(), a.key)
	})
	return err
}

// ensurePair reads the files name.crt and name.key, or makes them.
func ensurePair(dir layout.Dir, name string, issue func(crypto.Signer) ([]byte, error)) (tls.Certificate, error) {
	certFile, keyFile := dir.PKI(name+".crt"), dir.PKI(name+".key")
	if _, err := os.Stat(certFile); err == nil {
		return tls.LoadX509KeyPair(certFile, keyFile)
	}
	key, err := ensureKey(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := issue(key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate %s: %w", name, err)
	}
	if err := replace(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})); err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(certFile, keyFile)
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // for a clock that is set back
	template.NotAfter = time.Now().Add(validity)
	return x509.CreateCertificate(rand.Reader, template, parent, public, signer)
}

func ensureKey(file string) (crypto.Signer, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM: remove it", file)
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func makeKey(file string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, replace(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// ensureKubeconfig writes the kubeconfig of user, and the administrator's also to its usual path.
func (a *authority) ensureKubeconfig(dir layout.Dir, user string) error {
	content, err := a.kubeconfig(dir, user)
	if err != nil {
		return err
	}
	if user == "admin" {
		if err := replace(dir.Kubeconfig(), content); err != nil {
			return err
		}
	}
	return replace(Kubeconfig(dir, user), content)
}

func (a *authority) kubeconfig(dir layout.Dir, user string) ([]byte, error) {
	certificate, err := os.ReadFile(dir.PKI(user + ".crt"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(dir.PKI(user + ".key"))
	if err != nil {
		return nil, err
	}
	const cluster = "stayput"
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
	return clientcmd.Write(api.Config{
		Clusters:       map[string]*api.Cluster{cluster: {Server: plan.APIServerURL, CertificateAuthorityData: authority}},
		AuthInfos:      map[string]*api.AuthInfo{user: {ClientCertificateData: certificate, ClientKeyData: key}},
		Contexts:       map[string]*api.Context{cluster: {Cluster: cluster, AuthInfo: user}},
		CurrentContext: cluster,
	})
}
