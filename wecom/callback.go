package wecom

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const (
	// maxCallback is many times what the vendor sends.
	maxCallback = 64 << 10
	// answerWithin is how long a callback may take, to be read and to be stored: the vendor waits for 5 s, and calls again
	// then.
	answerWithin = 4 * time.Second
	// clockWindow is how far the time of a callback may be from ours. What is repeated within it asks for another pull,
	// which brings nothing new.
	clockWindow = 5 * time.Minute
)

// Notice is the text of a callback: something happened. What it was has to be pulled.
type Notice struct {
	To      string `xml:"ToUserName"`
	Created int64  `xml:"CreateTime"`
	Type    string `xml:"MsgType"`
	Event   string `xml:"Event"`
	Token   string `xml:"Token"`
	Account string `xml:"OpenKfId"`
}

// eventMessages is the Event of a notice that an account has something to pull.
const eventMessages = "kf_msg_or_event"

// Callback returns the handler for the URL that is set in the vendor's console. It answers 200 once a notice is stored
// in the broker, 403 to what is not the vendor's, and 503 when the broker is away: the vendor then calls again.
func (p *Pipeline) Callback() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, done := context.WithTimeout(r.Context(), answerWithin)
		defer done()
		answer, err := p.answer(w, r.WithContext(ctx))
		p.stats.called(err)
		if err != nil {
			p.log.WarnContext(r.Context(), "a callback of WeCom was not taken", "err", err)
			http.Error(w, http.StatusText(statusOf(err)), statusOf(err))
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(answer) // who does not read it calls again
	})
}

var errMethod = driver.NewError(ferry.ErrUnsupported, "a callback is neither GET nor POST",
	"the URL is for WeCom alone", nil)

func (p *Pipeline) answer(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	switch r.Method {
	case http.MethodGet: // the console verifies the URL: it wants the text back
		return p.open(r, r.URL.Query().Get("echostr"))
	case http.MethodPost:
		return []byte("success"), p.take(w, r)
	}
	return nil, errMethod
}

// take stores the notice of a POST.
func (p *Pipeline) take(w http.ResponseWriter, r *http.Request) error {
	body, err := readCallback(w, r)
	if err != nil {
		return err
	}
	var outer struct {
		Encrypted string `xml:"Encrypt"`
	}
	if err := decodeXML(body, &outer); err != nil {
		return err
	}
	text, err := p.open(r, outer.Encrypted)
	if err != nil {
		return err
	}
	var n Notice
	if err := decodeXML(text, &n); err != nil {
		return err
	}
	return p.notice(r.Context(), n, r.URL.Query().Get("msg_signature"))
}

// readCallback reads a body that is neither too long nor too slow.
func readCallback(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(answerWithin)) // a connection that has none is not one of a server
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallback))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, driver.NewError(ferry.ErrTooLarge, "a callback has more than 64 KiB", "it is not one of WeCom", nil)
	case err != nil:
		return nil, driver.NewError(ferry.ErrInvalid, "a callback cannot be read", "its sender calls again", err)
	}
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

// open verifies a request and returns the text in it.
func (p *Pipeline) open(r *http.Request, encrypted string) ([]byte, error) {
	if p.keys == nil {
		return nil, driver.NewError(ferry.ErrRefused, "there are no keys for callbacks", "set Config.Keys", nil)
	}
	q := r.URL.Query()
	for _, name := range []string{"msg_signature", "timestamp", "nonce", "echostr"} {
		if len(q[name]) > 1 { // which of them was checked is not to be a question
			return nil, driver.NewError(ferry.ErrRefused, "a callback has the parameter "+name+" twice",
				"its sender is not WeCom", nil)
		}
	}
	text, err := p.keys.Open(q.Get("msg_signature"), q.Get("timestamp"), q.Get("nonce"), encrypted)
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseInt(q.Get("timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > clockWindow {
		return nil, driver.NewError(ferry.ErrRefused, "the time of a callback is more than 5 minutes from ours",
			"see the clock of this machine", nil)
	}
	return text, nil
}

// notice stores what a callback says. The signature makes one of several copies.
func (p *Pipeline) notice(ctx context.Context, n Notice, signature string) error {
	if n.Event != eventMessages {
		return p.other(ctx, n)
	}
	if err := checkAccount(n.Account); err != nil {
		return err
	}
	err := p.enqueue(ctx, pullJob{Account: n.Account, Token: n.Token}, ferry.Dedup(signature, 2*clockWindow))
	if err == nil {
		p.stats.calledFor(n.Account)
	}
	return err
}

// decodeXML reads a text of the vendor's. It resolves no entities but those of XML itself.
func decodeXML(text []byte, into any) error {
	if err := xml.NewDecoder(bytes.NewReader(text)).Decode(into); err != nil {
		return driver.NewError(ferry.ErrInvalid, "a callback is not the XML of WeCom",
			"its sender is not WeCom, or the format is set to JSON", nil)
	}
	return nil
}

// statusOf is the status of an error.
func statusOf(err error) int {
	switch {
	case errors.Is(err, ferry.ErrRefused):
		return http.StatusForbidden
	case errors.Is(err, ferry.ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ferry.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, ferry.ErrUnsupported):
		return http.StatusMethodNotAllowed
	}
	return http.StatusServiceUnavailable
}
