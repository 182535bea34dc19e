package server

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
)

// certificate is what the server proves itself with. It can be read again while connections are served.
type certificate struct {
	files Certificate
	now   atomic.Pointer[tls.Certificate]
}

// newCertificate reads a certificate, or returns nil if there is none.
func newCertificate(files Certificate) (*certificate, error) {
	if files == (Certificate{}) {
		return nil, nil
	}
	c := &certificate{files: files}
	return c, c.read()
}

// read reads the files. What cannot be read leaves what there was.
func (c *certificate) read() error {
	pair, err := tls.LoadX509KeyPair(c.files.File, c.files.Key)
	if err != nil {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the certificate %s cannot be used", c.files.File),
			"check both files: PEM, and the key of this certificate", err)
	}
	c.now.Store(&pair)
	return nil
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil },
	}
}
