package sms

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/internal/safehttp"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendor"
)

// AliyunOptions of the channel.
type AliyunOptions struct {
	AccessKeyID, AccessKeySecret string
	// SignName and TemplateCode are approved ones.
	SignName, TemplateCode string
	// Params are the template's parameters, each a template itself: {"content": "{title}"}.
	Params map[string]string
	// Endpoint defaults to https://dysmsapi.aliyuncs.com.
	Endpoint string
	HTTP     notify.HTTP
}

// Aliyun sends text messages by Alibaba Cloud, signed by ACS3-HMAC-SHA256.
type Aliyun struct {
	*vendor.Client
	o      AliyunOptions
	params map[string]notify.Template
}

// NewAliyun returns the channel, or says what is missing.
func NewAliyun(o AliyunOptions) (*Aliyun, error) {
	if o.Endpoint == "" {
		o.Endpoint = "https://dysmsapi.aliyuncs.com"
	}
	if err := needed(map[string]string{"AccessKeyID": o.AccessKeyID, "AccessKeySecret": o.AccessKeySecret,
		"SignName": o.SignName, "TemplateCode": o.TemplateCode}); err != nil {
		return nil, err
	}
	c := &Aliyun{Client: vendor.New(o.HTTP), o: o, params: map[string]notify.Template{}}
	for name, text := range o.Params {
		t, err := notify.ParseTemplate(text)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		c.params[name] = t
	}
	return c, c.CheckURL(o.Endpoint)
}

// Check refuses what is no telephone number.
func (c *Aliyun) Check(to string) error { return checkNumber(to) }

// Limits are Aliyun's for one number and one template: one a minute, five an hour.
func (c *Aliyun) Limits() notify.Limits { return limits() }

// Send sends one message.
func (c *Aliyun) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	params := map[string]string{}
	for name, t := range c.params {
		text, err := fill(t, r)
		if err != nil {
			return notify.Sent{}, err
		}
		params[name] = text
	}
	data, err := json.Marshal(params)
	if err != nil {
		return notify.Sent{}, err
	}
	call := acs3{Key: c.o.AccessKeyID, Secret: c.o.AccessKeySecret, Endpoint: c.o.Endpoint, Action: "SendSms",
		Version: "2017-05-25", Now: time.Now(), Nonce: rand.Text(), Query: map[string]string{"PhoneNumbers": r.To,
			"SignName": c.o.SignName, "TemplateCode": c.o.TemplateCode, "TemplateParam": string(data), "OutId": r.ID}}
	to, header, err := call.sign()
	if err != nil {
		return notify.Sent{}, err
	}
	a, err := c.Do(ctx, vendor.Call{URL: to, Header: header, Secrets: []string{c.o.AccessKeySecret, c.o.AccessKeyID}})
	return judgeAliyun(a, err)
}

// judgeAliyun reads the answer, whose code says more than the status.
func judgeAliyun(a safehttp.Answer, failed error) (notify.Sent, error) {
	var got struct{ Code, Message, BizId string }
	if a.JSON(&got) != nil || got.Code == "" {
		if failed == nil {
			failed = &notify.Error{Code: notify.CodeUnavailable, Text: "the answer is not Aliyun's",
				Hint: "see Endpoint"}
		}
		return notify.Sent{}, failed
	}
	if got.Code == "OK" && failed == nil {
		return notify.Sent{ID: got.BizId}, nil
	}
	e := &notify.Error{Code: notify.CodeInvalidMessage, Text: "Aliyun error " + got.Code + ": " + got.Message}
	switch code := got.Code; {
	case code == "isv.BUSINESS_LIMIT_CONTROL", strings.HasPrefix(code, "Throttling"):
		e.Code, e.After = notify.CodeRateLimit, time.Minute
	case code == "isv.DAY_LIMIT_CONTROL":
		e.Code, e.Hint = notify.CodeInvalidTarget, "the number had its messages of today"
	case code == "isv.MOBILE_NUMBER_ILLEGAL", code == "isv.MOBILE_COUNT_OVER_LIMIT":
		e.Code = notify.CodeInvalidTarget
	case strings.HasPrefix(code, "InvalidAccessKeyId"), code == "SignatureDoesNotMatch", code == "Forbidden.RAM",
		code == "isv.OUT_OF_SERVICE", code == "isv.AMOUNT_NOT_ENOUGH", strings.HasPrefix(code, "NoPermission"):
		e.Code, e.Hint = notify.CodeAuth, "see the access key, its rights and the balance"
	case code == "isp.SYSTEM_ERROR", code == "ServiceUnavailable", code == "InternalError",
		code == "isp.RAM_PERMISSION_DENY":
		e.Code = notify.CodeUnavailable
	case code == "isv.BLACK_KEY_CONTROL_LIMIT", code == "isv.PARAM_NOT_SUPPORT_URL":
		e.Code = notify.CodeContent
	}
	return notify.Sent{}, e
}

// acs3 is a call that is signed by ACS3-HMAC-SHA256.
type acs3 struct {
	Key, Secret     string
	Endpoint        string
	Action, Version string
	Nonce           string
	Now             time.Time
	Query           map[string]string
}

// sign returns the address and the headers of the call.
func (c acs3) sign() (string, http.Header, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return "", nil, &notify.Error{Code: notify.CodeInvalidConfig, Text: "Endpoint is no URL", Hint: "correct it"}
	}
	payload := hashed("") // parameters are in the query
	headers := map[string]string{"host": u.Host, "x-acs-action": c.Action, "x-acs-content-sha256": payload,
		"x-acs-date": c.Now.UTC().Format("2006-01-02T15:04:05Z"), "x-acs-signature-nonce": c.Nonce,
		"x-acs-version": c.Version}
	names := sortedKeys(headers)
	var canonical strings.Builder
	query := canonicalQuery(c.Query)
	canonical.WriteString("POST\n/\n" + query + "\n")
	for _, name := range names {
		canonical.WriteString(name + ":" + strings.TrimSpace(headers[name]) + "\n")
	}
	signedHeaders := strings.Join(names, ";")
	canonical.WriteString("\n" + signedHeaders + "\n" + payload)
	const algorithm = "ACS3-HMAC-SHA256"
	h := hmac.New(sha256.New, []byte(c.Secret))
	h.Write([]byte(algorithm + "\n" + hashed(canonical.String())))
	header := http.Header{"Authorization": {fmt.Sprintf("%s Credential=%s,SignedHeaders=%s,Signature=%s",
		algorithm, c.Key, signedHeaders, hex.EncodeToString(h.Sum(nil)))}}
	for name, value := range headers {
		if name != "host" {
			header.Set(name, value)
		}
	}
	u.Path, u.RawQuery = "/", query
	return u.String(), header, nil
}

// canonicalQuery is sorted and escaped as RFC 3986 says, which url.Values does not.
func canonicalQuery(q map[string]string) string {
	pairs := make([]string, 0, len(q))
	for _, name := range sortedKeys(q) {
		pairs = append(pairs, escape(name)+"="+escape(q[name]))
	}
	return strings.Join(pairs, "&")
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
