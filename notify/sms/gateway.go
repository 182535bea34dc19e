package sms

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendor"
)

// GatewayOptions of the channel.
type GatewayOptions struct {
	// URL is called with POST.
	URL string
	// Header goes along, with keys for example.
	Header map[string]string
	// Body is a template of JSON: `{{"phone": "{to}", "text": "{title} {body}"}}`. Values are escaped.
	Body string
	// Success is a text that the answer of status 200 to 299 has when the message was taken. Empty: the status says it.
	Success string
	Rates   []notify.Rate
	HTTP    notify.HTTP
}

// Gateway sends text messages by any server that takes JSON.
type Gateway struct {
	*vendor.Client
	o    GatewayOptions
	body notify.Template
}

// NewGateway returns the channel, or says what is missing.
func NewGateway(o GatewayOptions) (*Gateway, error) {
	if err := needed(map[string]string{"URL": o.URL}); err != nil {
		return nil, err
	}
	c := &Gateway{Client: vendor.New(o.HTTP), o: o}
	var err error
	if c.body, err = notify.ParseTemplate(o.Body); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	sample := notify.Rendered{To: "1", Title: "t", Body: "b", Data: map[string]string{}}
	for _, name := range c.body.Variables() {
		sample.Data[name] = "x"
	}
	if text, err := c.render(sample); err != nil || !json.Valid([]byte(text)) {
		return nil, wrong(`write {{"phone": "{to}"}}`, "the body of the gateway is no JSON")
	}
	for name, value := range o.Header {
		if strings.ContainsAny(name+value, "\r\n") {
			return nil, wrong("remove it", "a header of the gateway has a line break")
		}
	}
	return c, c.CheckURL(o.URL)
}

// Check refuses what is no telephone number.
func (c *Gateway) Check(to string) error { return checkNumber(to) }

// Limits are what the options say.
func (c *Gateway) Limits() notify.Limits {
	return notify.Limits{Rates: c.o.Rates, Formats: []notify.Format{notify.Text}}
}

// render fills in the body, with values escaped for a text of JSON.
func (c *Gateway) render(r notify.Rendered) (string, error) {
	escaped := map[string]any{}
	for name, value := range variables(r) {
		data, err := vendor.JSON(value)
		if err != nil {
			return "", err
		}
		escaped[name] = string(data[1 : len(data)-1]) // without the quotes: all variables are texts
	}
	return c.body.Execute(escaped)
}

// Send sends one message.
func (c *Gateway) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	body, err := c.render(r)
	if err != nil {
		return notify.Sent{}, &notify.Error{Code: notify.CodeInvalidMessage, Text: "the body cannot be made",
			Cause: err}
	}
	header, secrets := vendor.JSONHeader(), vendor.Secrets(notify.Robot{URL: c.o.URL})
	for name, value := range c.o.Header {
		header.Set(name, value)
		secrets = append(secrets, value)
	}
	header.Set("Idempotency-Key", r.ID)
	a, err := c.Do(ctx, vendor.Call{URL: c.o.URL, Header: header, Body: []byte(body), Secrets: secrets})
	if err != nil {
		return notify.Sent{}, err
	}
	if c.o.Success != "" && !strings.Contains(string(a.Body), c.o.Success) {
		return notify.Sent{}, &notify.Error{Code: notify.CodeUnavailable,
			Text: "the gateway answered: " + vendor.Excerpt(a.Body, secrets...)}
	}
	return notify.Sent{ID: r.ID}, nil
}
