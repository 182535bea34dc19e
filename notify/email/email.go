// Package email is the channel of SMTP: TLS from the first byte, or STARTTLS that is mandatory; HTML with a text beside
// it, and attachments. The Message-ID is the same whenever the same notification is sent again.
//
// Data that it knows: "text", the text beside an HTML body, and "reply_to".
package email

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
	gomail "github.com/wneessen/go-mail"
)

// Options of the channel.
type Options struct {
	Host string
	// Port defaults to 465 with TLS and to 587 without.
	Port int
	// TLS speaks TLS from the first byte. Otherwise STARTTLS is demanded.
	TLS bool
	// Username and Password log in. Default to none.
	Username, Password string
	// From is the sender: "Ops <ops@example.com>".
	From string
	// TLSConfig verifies the server. Defaults to the system's certificates and Host.
	TLSConfig *tls.Config
	// Rates hold for each address. Default to none.
	Rates []notify.Rate
}

// Channel sends e-mail.
type Channel struct {
	o    Options
	from *mail.Address
}

// New returns the channel, or says what is wrong with the options.
func New(o Options) (*Channel, error) {
	if o.Host == "" {
		return nil, wrong("name the SMTP server", "the channel has no host")
	}
	if (o.Username == "") != (o.Password == "") {
		return nil, wrong("give both, or none", "the channel has a user without a password, or the other way round")
	}
	from, err := parse(o.From)
	if err != nil {
		return nil, err
	}
	if o.Port == 0 {
		o.Port = 587
		if o.TLS {
			o.Port = 465
		}
	}
	return &Channel{o: o, from: from}, nil
}

func wrong(hint, text string) error { return driver.NewError(ferry.ErrInvalid, text, hint, nil) }

// parse reads an address. A line break would begin a header of its own.
func parse(address string) (*mail.Address, error) {
	a, err := mail.ParseAddress(address)
	if err != nil || strings.ContainsAny(address, "\r\n") {
		return nil, wrong("write it as name@example.com", fmt.Sprintf("%.80q is no e-mail address", address))
	}
	return a, nil
}

// Check refuses what is no address.
func (c *Channel) Check(to string) error {
	_, err := parse(to)
	return err
}

// Attaches says that the channel takes attachments.
func (c *Channel) Attaches() bool { return true }

// Limits are what the options say.
func (c *Channel) Limits() notify.Limits {
	return notify.Limits{Rates: c.o.Rates, Formats: []notify.Format{notify.Text, notify.HTML}}
}

// Send sends one mail.
func (c *Channel) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	m, id, err := c.compose(r)
	if err != nil {
		return notify.Sent{}, &notify.Error{Code: notify.CodeInvalidMessage, Text: "the mail cannot be made",
			Cause: err}
	}
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	client, err := c.client(ctx)
	if err != nil {
		return notify.Sent{}, &notify.Error{Code: notify.CodeInvalidConfig, Text: "the options are wrong", Cause: err}
	}
	err = client.DialAndSendWithContext(ctx, m)
	if err != nil && !m.IsDelivered() { // what fails after the server took it fails only to say goodbye
		return notify.Sent{}, c.judge(err)
	}
	return notify.Sent{ID: id}, nil
}

// Health connects and logs in, and sends nothing.
func (c *Channel) Health(ctx context.Context) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	if err := client.DialWithContext(ctx); err != nil {
		return c.judge(err)
	}
	return client.Close()
}

// client returns one whose connection ends with ctx at the latest: the library looks at ctx only while it connects.
func (c *Channel) client(ctx context.Context) (*gomail.Client, error) {
	secure := c.o.TLSConfig
	if secure == nil {
		secure = &tls.Config{ServerName: c.o.Host, MinVersion: tls.VersionTLS12}
	}
	opts := []gomail.Option{gomail.WithPort(c.o.Port), gomail.WithTimeout(10 * time.Second),
		gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithTLSConfig(secure)}
	dial := (&net.Dialer{}).DialContext
	if c.o.TLS { // the library finds the connection encrypted, and is not to demand STARTTLS
		dial = (&tls.Dialer{Config: secure}).DialContext
		opts = append(opts, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	}
	opts = append(opts, gomail.WithDialContextFunc(func(begin context.Context, network, to string) (net.Conn, error) {
		conn, err := dial(begin, network, to)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}))
	if c.o.Username != "" {
		opts = append(opts, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(c.o.Username),
			gomail.WithPassword(c.o.Password))
	}
	return gomail.NewClient(c.o.Host, opts...)
}

func (c *Channel) compose(r notify.Rendered) (*gomail.Msg, string, error) {
	to, err := parse(r.To)
	if err != nil {
		return nil, "", err
	}
	m := gomail.NewMsg()
	m.FromMailAddress(c.from)
	m.ToMailAddress(to)
	if reply := r.Data["reply_to"]; reply != "" {
		if err := m.ReplyTo(reply); err != nil {
			return nil, "", err
		}
	}
	m.Subject(r.Heading())
	m.SetDate()
	id := c.messageID(r.ID)
	m.SetMessageIDWithValue(id)
	if r.Priority >= notify.High {
		m.SetImportance(gomail.ImportanceHigh)
	}
	setBody(m, r)
	for _, a := range r.Attachments {
		opts := []gomail.FileOption{}
		if a.ContentType != "" {
			opts = append(opts, gomail.WithFileContentType(gomail.ContentType(a.ContentType)))
		}
		if err := m.AttachReader(a.Name, bytes.NewReader(a.Data), opts...); err != nil {
			return nil, "", err
		}
	}
	return m, id, nil
}

// setBody writes the body, HTML with a text for readers that show none.
func setBody(m *gomail.Msg, r notify.Rendered) {
	if r.Format != notify.HTML {
		m.SetBodyString(gomail.TypeTextPlain, r.Body)
		return
	}
	text := r.Data["text"]
	if text == "" {
		text = notify.Plain(r.Body)
	}
	m.SetBodyString(gomail.TypeTextPlain, text)
	m.AddAlternativeString(gomail.TypeTextHTML, r.Body)
}

// messageID is the same for the same notification.
func (c *Channel) messageID(id string) string {
	sum := sha256.Sum256([]byte(id))
	_, host, _ := strings.Cut(c.from.Address, "@")
	return hex.EncodeToString(sum[:16]) + "@" + host
}

// judge says what an error of the server means.
func (c *Channel) judge(err error) error {
	e := &notify.Error{Code: notify.CodeNetwork, Text: "the mail was not sent", Cause: err}
	code := smtpCode(err)
	var lookup *net.DNSError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Code = notify.CodeTimeout
	case errors.As(err, &untrusted):
		e.Code, e.Hint = notify.CodeInvalidConfig, "see that Host is the name in the server's certificate"
	case errors.As(err, &lookup) && lookup.IsNotFound:
		e.Code, e.Hint = notify.CodeInvalidConfig, "see that Host is right"
	case strings.Contains(err.Error(), "STARTTLS"):
		e.Code, e.Hint = notify.CodeInvalidConfig, "the server offers no STARTTLS: use TLS, or another port"
	case code == 454:
		e.Code = notify.CodeAuthUnavailable
	case code == 530 || code == 534 || code == 535 || code == 538:
		e.Code, e.Hint = notify.CodeAuth, "see Username and Password"
	case code >= 400 && code < 500:
		e.Code = notify.CodeUnavailable
	case code == 550 || code == 551 || code == 553:
		e.Code = notify.CodeInvalidTarget
	case code == 554:
		e.Code = notify.CodeContent
	case code >= 500:
		e.Code = notify.CodeInvalidMessage
	}
	return e
}

// smtpCode is what the server answered, or 0.
func smtpCode(err error) int {
	var reply *textproto.Error
	if errors.As(err, &reply) {
		return reply.Code
	}
	var send *gomail.SendError
	if errors.As(err, &send) {
		return send.ErrorCode()
	}
	return 0
}
