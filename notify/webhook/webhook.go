// Package webhook is the channel of HTTP callbacks, signed as Standard Webhooks says: headers webhook-id,
// webhook-timestamp and webhook-signature. The id is the same whenever the same notification is sent again, so that a
// receiver can tell. Private addresses are refused, at every connection.
package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendor"
)

// Options of the channel.
type Options struct {
	// Secret signs calls to URLs that targets give: "whsec_" and base64, of 24 to 64 bytes.
	Secret string
	// Endpoints are addresses that targets name, each with its own secret.
	Endpoints map[string]notify.Robot
	// Unsigned sends without a signature where there is no secret. Otherwise a channel without one is refused.
	Unsigned bool
	// Rates hold for each destination. Default to none.
	Rates []notify.Rate
	HTTP  notify.HTTP
}

// Channel calls webhooks.
type Channel struct {
	*vendor.Client
	secret    []byte
	endpoints map[string]endpoint
	unsigned  bool
	rates     []notify.Rate
}

type endpoint struct {
	url    string
	secret []byte
}

// New returns the channel, or says what is wrong with a secret or an endpoint.
func New(o Options) (*Channel, error) {
	c := &Channel{Client: vendor.New(o.HTTP), endpoints: map[string]endpoint{}, unsigned: o.Unsigned, rates: o.Rates}
	var err error
	if c.secret, err = decodeSecret(o.Secret); err != nil {
		return nil, err
	}
	for name, r := range o.Endpoints {
		if err := c.CheckURL(r.URL); err != nil {
			return nil, err
		}
		secret, err := decodeSecret(r.Secret)
		if err != nil {
			return nil, err
		}
		if len(secret) == 0 && !r.Unsigned && !o.Unsigned {
			return nil, noSecret()
		}
		c.endpoints[name] = endpoint{r.URL, secret}
	}
	if len(c.secret) == 0 && !o.Unsigned && len(o.Endpoints) == 0 {
		return nil, noSecret()
	}
	return c, nil
}

func noSecret() error {
	return driver.NewError(ferry.ErrInvalid, "a webhook has no secret",
		"give it one, whsec_ and base64, or set Unsigned: receivers cannot tell who calls then", nil)
}

// decodeSecret reads "whsec_" and base64. Empty is none.
func decodeSecret(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil || len(secret) < 24 || len(secret) > 64 {
		return nil, driver.NewError(ferry.ErrInvalid, "the secret of a webhook is not usable",
			"write whsec_ and the base64 of 24 to 64 random bytes", nil)
	}
	return secret, nil
}

// Limits are what the options say.
func (c *Channel) Limits() notify.Limits { return notify.Limits{Rates: c.rates} }

// Check refuses an address that is private or no URL, and a name that is no endpoint.
func (c *Channel) Check(to string) error {
	_, err := c.endpoint(to)
	return err
}

func (c *Channel) endpoint(to string) (endpoint, error) {
	if e, ok := c.endpoints[to]; ok {
		return e, nil
	}
	if err := c.CheckURL(to); err != nil {
		return endpoint{}, err
	}
	if len(c.secret) == 0 && !c.unsigned {
		return endpoint{}, noSecret()
	}
	return endpoint{to, c.secret}, nil
}

// Payload is what a receiver gets.
type Payload struct {
	Type      string    `json:"type"` // "notification"
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data is the notification.
type Data struct {
	ID       string            `json:"id"`
	Title    string            `json:"title"`
	Body     string            `json:"body"`
	Format   notify.Format     `json:"format"`
	Priority string            `json:"priority"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Send calls the webhook.
func (c *Channel) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	e, err := c.endpoint(r.To)
	if err != nil {
		return notify.Sent{}, err
	}
	now := time.Now()
	body, err := vendor.JSON(Payload{Type: "notification", Timestamp: now.UTC(), Data: Data{ID: r.ID, Title: r.Title,
		Body: r.Body, Format: r.Format, Priority: r.Priority.String(), Metadata: r.Metadata}})
	if err != nil {
		return notify.Sent{}, err
	}
	header := vendor.JSONHeader()
	sign(header, e.secret, r.ID, now, body)
	_, err = c.Do(ctx, vendor.Call{URL: e.url, Header: header, Body: body,
		Secrets: vendor.Secrets(notify.Robot{URL: e.url})})
	return notify.Sent{ID: r.ID}, err
}

func sign(h http.Header, secret []byte, id string, now time.Time, body []byte) {
	seconds := strconv.FormatInt(now.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", seconds)
	if len(secret) > 0 {
		h.Set("Webhook-Signature", Sign(secret, id, seconds, body))
	}
}

// Sign is the signature of Standard Webhooks.
func Sign(secret []byte, id, seconds string, body []byte) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(id + "." + seconds + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
