package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

func alter(t *testing.T, c *kfake.Cluster, topic, key, value string) error {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		return err
	}
	defer cl.Close()
	resp, err := kadm.NewClient(cl).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: key, Value: &value}}, topic)
	if err != nil {
		return err
	}
	for _, r := range resp {
		err = r.Err
	}
	return err
}

const canary = "Hunter2Canary"

// TestSASL publishes and consumes with each mechanism, and is refused with a wrong password that no error repeats.
func TestSASL(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(pass string) sasl.Mechanism{
		"PLAIN":         func(p string) sasl.Mechanism { return plain.Auth{User: "me", Pass: p}.AsMechanism() },
		"SCRAM-SHA-256": func(p string) sasl.Mechanism { return scram.Auth{User: "me", Pass: p}.AsSha256Mechanism() },
		"SCRAM-SHA-512": func(p string) sasl.Mechanism { return scram.Auth{User: "me", Pass: p}.AsSha512Mechanism() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake(t, kfake.EnableSASL(), kfake.Superuser(name, "me", canary))
			through(t, kafka.Options{Brokers: c.ListenAddrs(), SASL: with(canary), Partitions: 1, InternalPartitions: 1})
			_, err := kafka.New(t.Context(), kafka.Options{Brokers: c.ListenAddrs(), SASL: with(canary + "-wrong")})
			hinted(t, err, driver.ErrNotApplied)
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the error tells the secret: %v", err)
			}
			_, err = kafka.New(t.Context(), kafka.Options{Brokers: c.ListenAddrs()})
			hinted(t, err, driver.ErrNotApplied)
		})
	}
}

// through sends one message through a driver with these options.
func through(t *testing.T, o kafka.Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, err := kafka.New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, d)
	publish(t, d, message("a", "k"))
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
}

// TestTLS needs a certificate that is trusted, and is refused without.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	c := fake(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert}))
	through(t, kafka.Options{Brokers: c.ListenAddrs(), TLS: &tls.Config{RootCAs: pool,
		Certificates: []tls.Certificate{cert}}, Partitions: 1, InternalPartitions: 1})
	for name, o := range map[string]kafka.Options{
		"not trusted":    {TLS: &tls.Config{Certificates: []tls.Certificate{cert}}},
		"no certificate": {TLS: &tls.Config{RootCAs: pool}},
		"no TLS":         {},
	} {
		o.Brokers = c.ListenAddrs()
		d, err := kafka.New(t.Context(), o)
		if d != nil {
			end(t, d)
		}
		if err == nil {
			t.Errorf("%s: it opened", name)
			continue
		}
		hinted(t, err, driver.ErrNotApplied)
	}
}

// certificate makes one for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}
