package open

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/remote"
	"github.com/ferrymq/ferry/internal/privatefile"
)

// tokenVariable is where the token for a server is, unless a file has it.
const tokenVariable = "FERRY_TOKEN"

// openFerry opens ferry://host:7070 and ferrys://, which is the same over TLS.
func openFerry(ctx context.Context, rest string, p *parameters, o ferry.Options) (*ferry.Broker, error) {
	ro := remote.Options{URL: p.scheme + "://" + rest, Broker: o}
	ro.Token, ro.TokenFile = token(p)
	_ = p.flag("insecure") // see Diagnose
	if p.scheme == "ferrys" {
		ro.TLS = ferryTLS(p)
	}
	if err := p.done(); err != nil {
		return nil, err
	}
	return remote.Open(ctx, ro)
}

// token is the file that a parameter names, or what the variable holds.
func token(p *parameters) (text, file string) {
	if file = p.text("token_file"); file == "" {
		return os.Getenv(tokenVariable), ""
	}
	if _, err := privatefile.ReadSecret(file); err != nil {
		p.bad = append(p.bad, `parameter "token_file" must name a file that you can read and others cannot (chmod 600)`)
	}
	return "", file
}

// ferryTLS reads whom to trust.
func ferryTLS(p *parameters) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := p.text("ca"); file != "" {
		c.RootCAs = x509.NewCertPool()
		if pem, err := os.ReadFile(file); err != nil || !c.RootCAs.AppendCertsFromPEM(pem) {
			p.bad = append(p.bad, `parameter "ca" must name a readable file with certificates (PEM)`)
		}
	}
	return c
}
