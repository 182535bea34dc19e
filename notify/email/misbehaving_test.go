package email_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/email"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
)

// What a misbehaving server does in place of an answer.
const (
	hangs = "hangs"
	drops = "drops"
)

// misbehaving is an SMTP server over TLS that answers commands as a test says, by their first word; "." is the end of
// a mail.
type misbehaving struct {
	answers map[string]string
	asked   chan string // commands that hang
	closed  chan struct{}
}

// misbehave starts one and returns a channel to it.
func misbehave(t *testing.T, answers map[string]string) (*misbehaving, *email.Channel) {
	t.Helper()
	certs := httptest.NewUnstartedServer(nil)
	certs.StartTLS()
	t.Cleanup(certs.Close)
	roots := x509.NewCertPool()
	roots.AddCert(certs.Certificate())
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certs.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	s := &misbehaving{answers: answers, asked: make(chan string, 10), closed: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(c) })
			serving.Go(func() { <-s.closed; _ = c.Close() })
		}
	})
	t.Cleanup(func() { close(s.closed); _ = l.Close(); serving.Wait() })
	c, err := email.New(email.Options{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: true,
		From: "ops@example.com", TLSConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func (s *misbehaving) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	lines := bufio.NewScanner(c)
	if !s.answer(c, "CONNECT", "220 hello") {
		return
	}
	for inMail := false; lines.Scan(); {
		word, _, _ := strings.Cut(strings.ToUpper(lines.Text()), " ")
		usual := "250 ok"
		switch {
		case inMail && word != ".":
			continue
		case word == "DATA":
			usual = "354 go on"
		}
		inMail = word == "DATA"
		if !s.answer(c, word, usual) {
			return
		}
	}
}

// answer answers a command, and reports whether the connection goes on.
func (s *misbehaving) answer(c net.Conn, word, usual string) bool {
	answer, ok := s.answers[word]
	switch {
	case !ok:
		answer = usual
	case answer == drops:
		return false
	case answer == hangs:
		s.asked <- word
		<-s.closed
		return false
	}
	_, err := c.Write([]byte(answer + "\r\n"))
	return err == nil
}

var toLi = notify.Rendered{ID: "m", To: "li@example.com", Title: "t", Body: "b"}

// A mail that the server took is sent, whatever becomes of the connection then: sent again it would arrive twice.
func TestTakenMailIsSent(t *testing.T) {
	for _, answers := range []map[string]string{
		{"RSET": drops}, {"RSET": "421 too busy"}, {"QUIT": drops}, {"QUIT": "500 what?"},
	} {
		_, c := misbehave(t, answers)
		if _, err := c.Send(t.Context(), toLi); err != nil {
			t.Errorf("%v: %v", answers, err)
		}
	}
}

func TestMailThatWasNotTaken(t *testing.T) {
	for _, word := range []string{"CONNECT", "MAIL", "RCPT", "DATA", "."} {
		_, c := misbehave(t, map[string]string{word: drops})
		_, err := c.Send(t.Context(), toLi)
		vendortest.WantCode(t, err, notify.CodeNetwork)
	}
}

// A send ends with its context, wherever the server hangs.
func TestHangingServer(t *testing.T) {
	for _, word := range []string{"CONNECT", "EHLO", "MAIL", "DATA", "."} {
		s, c := misbehave(t, map[string]string{word: hangs})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := c.Send(ctx, toLi)
			ended <- err
		}()
		<-s.asked
		cancel()
		err := <-ended // by the connection that it closes, not by a time that is over
		ends := func(why string) bool { return err != nil && strings.Contains(err.Error(), why) }
		if !ends("closed network connection") && !ends("operation was canceled") && !ends("context canceled") {
			t.Errorf("%s: %v", word, err)
		}
	}
}
