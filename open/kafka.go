package open

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

// openKafka opens kafka://user:password@h1:9092,h2:9092 and kafkas://, which is the same over TLS.
func openKafka(ctx context.Context, rest string, p *parameters, o ferry.Options) (*ferry.Broker, error) {
	ko := kafka.Options{
		Namespace: p.text("namespace"), Partitions: int(p.number("partitions")),
		InternalPartitions: int(p.number("internal_partitions")),
		Replicas:           int(p.number("replicas")), MaxBody: int(p.number("max_body")), ClientID: p.text("client_id"),
		Rack:    p.text("rack"),
		Session: p.duration("session"), Transactions: p.flag("transactions"), Broker: o,
	}
	_ = p.flag("insecure") // see Diagnose
	switch foreign := p.text("foreign"); foreign {
	case "", "accept":
	case "reject":
		ko.RejectForeign = true
	default:
		p.bad = append(p.bad, `parameter "foreign" must be accept or reject`)
	}
	var err error
	if ko.Brokers, ko.SASL, err = kafkaHosts(rest, p); err != nil {
		return nil, err
	}
	if p.scheme == "kafkas" {
		ko.TLS = kafkaTLS(p)
	}
	if err := p.done(); err != nil {
		return nil, err
	}
	return kafka.Open(ctx, ko)
}

// kafkaHosts reads who we are and where the brokers are. Its errors quote nothing.
func kafkaHosts(rest string, p *parameters) ([]string, sasl.Mechanism, error) {
	malformed := driver.NewError(driver.ErrInvalid, "a kafka:// URL names brokers",
		"write kafka://h1:9092,h2:9092 or kafka://user:password@h1:9092", nil)
	rest = strings.TrimSuffix(rest, "/")
	who := ""
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		who, rest = rest[:at], rest[at+1:]
	}
	var hosts []string
	for _, h := range strings.Split(rest, ",") {
		u, err := url.Parse("kafka://" + h)
		if err != nil || h == "" || u.Host != h || u.Hostname() == "" {
			return nil, nil, malformed
		}
		if u.Port() == "" {
			h = net.JoinHostPort(u.Hostname(), "9092")
		}
		hosts = append(hosts, h)
	}
	mechanism, given := p.text("sasl"), who != ""
	if !given {
		if mechanism != "" {
			p.bad = append(p.bad, `parameter "sasl" needs a user and a password before the host`)
		}
		return hosts, nil, nil
	}
	user, password, _ := strings.Cut(who, ":")
	user, err := url.PathUnescape(user)
	password, err2 := url.PathUnescape(password)
	if err != nil || err2 != nil || user == "" {
		return nil, nil, malformed
	}
	return hosts, kafkaSASL(mechanism, user, password, p), nil
}

func kafkaSASL(mechanism, user, password string, p *parameters) sasl.Mechanism {
	switch strings.ToLower(mechanism) {
	case "", "scram-sha-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "plain":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	}
	p.bad = append(p.bad, `parameter "sasl" must be scram-sha-512, scram-sha-256 or plain`)
	return nil
}

// kafkaTLS reads the files that parameters name: ca (whom to trust), cert and key (who we are).
func kafkaTLS(p *parameters) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := p.text("ca"); file != "" {
		c.RootCAs = x509.NewCertPool()
		if pem, err := os.ReadFile(file); err != nil || !c.RootCAs.AppendCertsFromPEM(pem) {
			p.bad = append(p.bad, `parameter "ca" must name a readable file with certificates (PEM)`)
		}
	}
	if cert, key := p.text("cert"), p.text("key"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			p.bad = append(p.bad, `parameters "cert" and "key" must name readable files of one certificate and its key (PEM)`)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}
