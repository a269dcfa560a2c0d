package generate

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"time"
)

// backdated is by how much the clocks of managers and API servers may differ.
const backdated = time.Hour

// authority is a CA that signs certificates for one host.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority returns a new CA. What it signs counts for the host only.
func newAuthority(host string, now time.Time, lifetime time.Duration) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		Subject:                     pkix.Name{CommonName: "stayput"},
		NotBefore:                   now.Add(-backdated),
		NotAfter:                    now.Add(lifetime),
		IsCA:                        true,
		BasicConstraintsValid:       true,
		MaxPathLenZero:              true,
		KeyUsage:                    x509.KeyUsageCertSign,
		ExtKeyUsage:                 []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomains:         []string{host},
		PermittedDNSDomainsCritical: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	certificate, err := x509.ParseCertificate(signed)
	return authority{certificate, key}, err
}

// made is when the CA was made.
func (a authority) made() time.Time { return a.certificate.NotBefore.Add(backdated) }

// leaf returns a new serving certificate, which ends with the CA. It fails if API servers that trust the CA would not accept it.
func (a authority) leaf(host string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "stayput-webhook"},
		DNSNames:    []string{host},
		NotBefore:   now.Add(-backdated),
		NotAfter:    a.certificate.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(signed)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(a.certificate)
	if _, err := parsed.Verify(x509.VerifyOptions{DNSName: host, Roots: trusted, CurrentTime: now}); err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key, Leaf: parsed}, nil
}

// The keys of the Secret: certificates of CAs, and their keys, each as PEM, in any order.
const (
	certificatesKey = "ca.crt"
	keysKey         = "ca.key"
)

// most is how many CAs are kept at most. A rotation needs two.
const most = 8

// usable returns the CAs of the Secret whose signatures API servers accept now, those made last first. Whatever else is in the Secret does
// not count, such as a certificate without its key.
func usable(data map[string][]byte, host string, now time.Time) []authority {
	keys := keysIn(data[keysKey])
	var all []authority
	for _, certificate := range certificatesIn(data[certificatesKey]) {
		i := slices.IndexFunc(keys, func(key crypto.Signer) bool { return same(key.Public(), certificate.PublicKey) })
		if i < 0 {
			continue
		}
		a := authority{certificate, keys[i]}
		if _, err := a.leaf(host, now); err == nil {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b authority) int {
		return cmp.Or(b.made().Compare(a.made()), b.certificate.NotAfter.Compare(a.certificate.NotAfter),
			bytes.Compare(a.certificate.Raw, b.certificate.Raw))
	})
	return all[:min(most, len(all))]
}

// stored returns what the Secret has to hold for these CAs.
func stored(authorities []authority) (map[string][]byte, error) {
	data := map[string][]byte{certificatesKey: {}, keysKey: {}}
	for _, a := range authorities {
		key, err := x509.MarshalPKCS8PrivateKey(a.key)
		if err != nil {
			return nil, err
		}
		data[certificatesKey] = append(data[certificatesKey], pemOf(a.certificate)...)
		data[keysKey] = append(data[keysKey], pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	}
	return data, nil
}

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// certificatesIn returns the certificates of a text. It leaves out what is none.
func certificatesIn(text []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for _, block := range blocksIn(text) {
		if certificate, err := x509.ParseCertificate(block); err == nil {
			all = append(all, certificate)
		}
	}
	return all
}

// keysIn returns the keys of a text. It leaves out what is none.
func keysIn(text []byte) []crypto.Signer {
	var all []crypto.Signer
	for _, block := range blocksIn(text) {
		if key, err := x509.ParsePKCS8PrivateKey(block); err == nil {
			if signer, signs := key.(crypto.Signer); signs {
				all = append(all, signer)
			}
		}
	}
	return all
}

func blocksIn(text []byte) [][]byte {
	var all [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		all = append(all, block.Bytes)
	}
	return all
}

func same(a, b crypto.PublicKey) bool {
	key, compares := a.(interface{ Equal(crypto.PublicKey) bool })
	return compares && key.Equal(b)
}
