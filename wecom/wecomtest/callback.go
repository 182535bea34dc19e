package wecomtest

import (
	"context"
	"crypto/rand"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/wecom"
)

// Callback is one that the vendor sends. It can be sent again, and changed on the way.
type Callback struct {
	Signature, Timestamp, Nonce, Body string

	out      *http.Client
	patience time.Duration
}

// msgTokenLasts is how long the token in a callback is good for.
const msgTokenLasts = 10 * time.Minute

// Callback makes a callback that says that an account has something to pull.
func (s *Server) Callback(account string) Callback {
	token := rand.Text()
	s.mu.Lock()
	s.account(account).msgTokens[token] = time.Now().Add(msgTokenLasts)
	s.mu.Unlock()
	return s.Notice(wecom.Notice{To: s.o.Corp, Type: "event", Event: "kf_msg_or_event", Token: token, Account: account})
}

// Notice makes a callback with any text, sent now.
func (s *Server) Notice(n wecom.Notice) Callback { return s.NoticeAt(n, time.Now()) }

// NoticeAt makes a callback that says it was sent at a time.
func (s *Server) NoticeAt(n wecom.Notice, at time.Time) Callback {
	n.Created = at.Unix()
	text, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"xml"`
		wecom.Notice
	}{Notice: n})
	if err != nil {
		panic(fmt.Sprintf("wecomtest: the notice cannot be encoded: %v", err)) // a mistake in a test
	}
	return s.seal(text, at)
}

func (s *Server) seal(text []byte, at time.Time) Callback {
	keys, err := wecom.NewKeys(s.o.Corp, s.keyPair())
	if err != nil {
		panic(fmt.Sprintf("wecomtest: the keys are wrong: %v", err))
	}
	c := Callback{Timestamp: strconv.FormatInt(at.Unix(), 10), Nonce: rand.Text(), out: s.out, patience: s.o.Patience}
	var encrypted string
	c.Signature, encrypted = keys.Seal(text, c.Timestamp, c.Nonce)
	c.Body = "<xml><ToUserName><![CDATA[" + s.o.Corp + "]]></ToUserName><AgentID></AgentID>" +
		"<Encrypt><![CDATA[" + encrypted + "]]></Encrypt></xml>"
	return c
}

// Send sends it, and returns the status of the answer.
func (c Callback) Send(ctx context.Context, to string) (status int, err error) {
	status, _, err = c.do(ctx, http.MethodPost, to, url.Values{}, c.Body)
	return status, err
}

// resends is how often the vendor sends a callback again.
const resends = 3

// Deliver sends it as the vendor does: without an answer of 200 in time it is sent again, three times. It returns how
// often it was sent, and whether it was taken.
func (c Callback) Deliver(ctx context.Context, to string) (sent int, taken bool) {
	for !taken && sent <= resends && ctx.Err() == nil {
		patient, done := context.WithTimeout(ctx, c.patience)
		status, err := c.Send(patient, to)
		done()
		sent, taken = sent+1, err == nil && status == http.StatusOK
	}
	return sent, taken
}

// Verify asks for the verification of a URL, as the vendor's console does when it is set.
func (s *Server) Verify(ctx context.Context, to string) error {
	const text = "1616140317555161061"
	c := s.seal([]byte(text), time.Now())
	_, encrypted, _ := strings.Cut(c.Body, "<Encrypt><![CDATA[")
	encrypted, _, _ = strings.Cut(encrypted, "]]>")
	status, answer, err := c.do(ctx, http.MethodGet, to, url.Values{"echostr": {encrypted}}, "")
	if err != nil {
		return err
	}
	if status != http.StatusOK || answer != text {
		return fmt.Errorf("the verification was answered with %d and %q", status, answer)
	}
	return nil
}

func (c Callback) do(ctx context.Context, method, to string, q url.Values, body string) (status int, answer string,
	err error) {
	q.Set("msg_signature", c.Signature)
	q.Set("timestamp", c.Timestamp)
	q.Set("nonce", c.Nonce)
	req, err := http.NewRequestWithContext(ctx, method, to+"?"+q.Encode(), strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := c.out.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, string(text), err
}
