package email_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/email"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
)

// server is a real SMTP server that demands TLS and a password.
type server struct {
	host  string
	port  int
	roots *x509.CertPool

	mu     sync.Mutex
	mails  []string
	refuse *smtp.SMTPError // of RCPT
}

// session is one connection to it.
type session struct {
	*server
	user string
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "ops" || password != vendortest.Secret {
			return &smtp.SMTPError{Code: 535, Message: "authentication failed"}
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	if s.user == "" {
		return &smtp.SMTPError{Code: 530, Message: "authentication required"}
	}
	return nil
}

func (s *session) Rcpt(string, *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return s.refuse
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, string(data))
	return err
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

// start runs a server with the certificate of httptest, which is for example.com and 127.0.0.1.
func start(t *testing.T, implicit bool) *server {
	certs := httptest.NewUnstartedServer(nil)
	certs.StartTLS()
	t.Cleanup(certs.Close)
	config := &tls.Config{Certificates: certs.TLS.Certificates}
	roots := x509.NewCertPool()
	roots.AddCert(certs.Certificate())
	s := &server{host: "127.0.0.1", roots: roots}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	if implicit {
		l = tls.NewListener(l, config)
	}
	srv := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }))
	srv.TLSConfig, srv.ReadTimeout, srv.WriteTimeout = config, 10*time.Second, 10*time.Second
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _, _ = srv.Close(), l.Close(); <-done }) // Serve may not have begun
	return s
}

func (s *server) channel(t *testing.T, implicit bool, password string) *email.Channel {
	t.Helper()
	c, err := email.New(email.Options{Host: s.host, Port: s.port, TLS: implicit, Username: "ops", Password: password,
		From: "Ops <ops@example.com>", TLSConfig: &tls.Config{RootCAs: s.roots, ServerName: s.host,
			MinVersion: tls.VersionTLS12}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *server) last(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mails) == 0 {
		t.Fatal("no mail arrived")
	}
	return s.mails[len(s.mails)-1]
}

func TestSend(t *testing.T) {
	for _, implicit := range []bool{false, true} {
		s := start(t, implicit)
		c := s.channel(t, implicit, vendortest.Secret)
		if err := c.Health(t.Context()); err != nil {
			t.Error(err)
		}
		r := notify.Rendered{ID: "m/0/0", To: "li@example.com", Title: "Disk full", Body: "<p>2 % left</p>",
			Format:      notify.HTML,
			Attachments: []notify.Attachment{{Name: "a.txt", ContentType: "text/plain", Data: []byte("hello")}}}
		sent, err := c.Send(t.Context(), r)
		vendortest.WantCode(t, err, "")
		mail := s.last(t)
		for _, want := range []string{"Subject: Disk full", "To: <li@example.com>", "text/html", "a.txt",
			"aGVsbG8=", sent.ID} {
			if !strings.Contains(mail, want) {
				t.Errorf("no %q in %s", want, mail)
			}
		}
		again, err := c.Send(t.Context(), r)
		vendortest.WantCode(t, err, "")
		if again.ID != sent.ID {
			t.Errorf("sent again it is %s, not %s", again.ID, sent.ID)
		}
	}
}

func TestErrors(t *testing.T) {
	s := start(t, false)
	r := notify.Rendered{ID: "m", To: "li@example.com", Title: "t", Body: "b"}
	_, err := s.channel(t, false, "wrong").Send(t.Context(), r)
	vendortest.WantCode(t, err, notify.CodeAuth)

	c := s.channel(t, false, vendortest.Secret)
	for code, want := range map[int]notify.Code{
		451: notify.CodeUnavailable, 550: notify.CodeInvalidTarget, 552: notify.CodeInvalidMessage, 554: notify.CodeContent,
	} {
		s.mu.Lock()
		s.refuse = &smtp.SMTPError{Code: code, Message: "no"}
		s.mu.Unlock()
		_, err := c.Send(t.Context(), r)
		vendortest.WantCode(t, err, want)
	}
}

// A server whose certificate is not trusted, or that offers no STARTTLS, gets no password.
func TestTLSIsMandatory(t *testing.T) {
	s := start(t, false)
	s.roots = x509.NewCertPool()
	_, err := s.channel(t, false, vendortest.Secret).Send(t.Context(), notify.Rendered{ID: "m", To: "li@example.com",
		Body: "b"})
	vendortest.WantCode(t, err, notify.CodeInvalidConfig)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }))
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _, _ = srv.Close(), l.Close(); <-done }) // Serve may not have begun
	s.port = l.Addr().(*net.TCPAddr).Port
	_, err = s.channel(t, false, vendortest.Secret).Send(t.Context(), notify.Rendered{ID: "m", To: "li@example.com",
		Body: "b"})
	vendortest.WantCode(t, err, notify.CodeInvalidConfig)
	if len(s.mails) > 0 {
		t.Error("a mail was sent in the clear")
	}
}

func TestWrongAddresses(t *testing.T) {
	c := start(t, false).channel(t, false, vendortest.Secret)
	for _, to := range []string{"", "nobody", "a@b.com\r\nBcc: c@d.com", "a@b.com, c@d.com"} {
		if err := c.Check(to); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%q: %v", to, err)
		}
	}
	for name, o := range map[string]email.Options{
		"no host":     {From: "a@b.com"},
		"no from":     {Host: "h"},
		"no password": {Host: "h", From: "a@b.com", Username: "u"},
		"line break":  {Host: "h", From: "a@b.com\r\nBcc: c@d.com"},
	} {
		if _, err := email.New(o); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
