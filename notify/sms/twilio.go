package sms

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ferrymq/ferry/internal/safehttp"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendor"
)

// TwilioOptions of the channel.
type TwilioOptions struct {
	AccountSID, AuthToken string
	// From is a number of yours, or a messaging service.
	From string
	// Endpoint defaults to https://api.twilio.com.
	Endpoint string
	HTTP     notify.HTTP
}

// Twilio sends text messages by Twilio.
type Twilio struct {
	*vendor.Client
	o TwilioOptions
}

// NewTwilio returns the channel, or says what is missing.
func NewTwilio(o TwilioOptions) (*Twilio, error) {
	if o.Endpoint == "" {
		o.Endpoint = "https://api.twilio.com"
	}
	if err := needed(map[string]string{"AccountSID": o.AccountSID, "AuthToken": o.AuthToken,
		"From": o.From}); err != nil {
		return nil, err
	}
	c := &Twilio{Client: vendor.New(o.HTTP), o: o}
	return c, c.CheckURL(o.Endpoint)
}

// Check refuses what is no telephone number.
func (c *Twilio) Check(to string) error { return checkNumber(to) }

// Limits are those of one sender's number, and of one message, the title included.
func (c *Twilio) Limits() notify.Limits {
	return notify.Limits{
		Rates:    []notify.Rate{{Sends: 1, Per: time.Second}},
		MaxBytes: map[notify.Format]int{notify.Text: 1600 - notify.MaxTitle - 20},
		Split:    []notify.Format{notify.Text},
		Formats:  []notify.Format{notify.Text},
	}
}

// Send sends one message.
func (c *Twilio) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	form := url.Values{"To": {r.To}, "From": {c.o.From}, "Body": {r.Content()}}
	account := base64.StdEncoding.EncodeToString([]byte(c.o.AccountSID + ":" + c.o.AuthToken))
	a, err := c.Do(ctx, vendor.Call{
		URL: c.o.Endpoint + "/2010-04-01/Accounts/" + url.PathEscape(c.o.AccountSID) + "/Messages.json",
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Authorization": {"Basic " +
			account}},
		Body:    []byte(form.Encode()),
		Secrets: []string{c.o.AuthToken, account},
	})
	return judgeTwilio(a, err)
}

// judgeTwilio reads the answer, whose code says more than the status.
func judgeTwilio(a safehttp.Answer, failed error) (notify.Sent, error) {
	var got struct {
		SID     string `json:"sid"`
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if err := a.JSON(&got); err != nil || got.Code == 0 {
		return notify.Sent{ID: got.SID}, failed
	}
	e := &notify.Error{Code: notify.CodeInvalidMessage, Text: fmt.Sprintf("Twilio error %d: %s", got.Code, got.Message)}
	switch got.Code {
	case 20003:
		e.Code, e.Hint = notify.CodeAuth, "see AccountSID and AuthToken"
	case 20429, 14107:
		e.Code, e.After = notify.CodeRateLimit, time.Second
	case 20500, 20503:
		e.Code = notify.CodeUnavailable
	case 21211, 21408, 21610, 21612, 21614:
		e.Code = notify.CodeInvalidTarget
	}
	return notify.Sent{}, e
}
