package sms

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/internal/safehttp"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendor"
)

// TencentOptions of the channel.
type TencentOptions struct {
	SecretID, SecretKey string
	// AppID is the SmsSdkAppId; SignName and TemplateID are approved ones.
	AppID, SignName, TemplateID string
	// Params are the template's parameters in order, each a template itself: {"{title}"}.
	Params []string
	// Region defaults to ap-guangzhou.
	Region string
	// Endpoint defaults to https://sms.tencentcloudapi.com.
	Endpoint string
	HTTP     notify.HTTP
}

// Tencent sends text messages by Tencent Cloud, signed by TC3-HMAC-SHA256.
type Tencent struct {
	*vendor.Client
	o      TencentOptions
	params []notify.Template
}

// NewTencent returns the channel, or says what is missing.
func NewTencent(o TencentOptions) (*Tencent, error) {
	if o.Endpoint == "" {
		o.Endpoint = "https://sms.tencentcloudapi.com"
	}
	if o.Region == "" {
		o.Region = "ap-guangzhou"
	}
	if err := needed(map[string]string{"SecretID": o.SecretID, "SecretKey": o.SecretKey, "AppID": o.AppID,
		"SignName": o.SignName, "TemplateID": o.TemplateID}); err != nil {
		return nil, err
	}
	c := &Tencent{Client: vendor.New(o.HTTP), o: o}
	for i, text := range o.Params {
		t, err := notify.ParseTemplate(text)
		if err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i+1, err)
		}
		c.params = append(c.params, t)
	}
	return c, c.CheckURL(o.Endpoint)
}

// Check refuses what is no telephone number.
func (c *Tencent) Check(to string) error { return checkNumber(to) }

// Limits are Tencent's default for one number.
func (c *Tencent) Limits() notify.Limits { return limits() }

type tencentRequest struct {
	PhoneNumberSet   []string
	SmsSdkAppId      string
	SignName         string
	TemplateId       string
	TemplateParamSet []string
	SessionContext   string
}

// Send sends one message.
func (c *Tencent) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	request := tencentRequest{PhoneNumberSet: []string{r.To}, SmsSdkAppId: c.o.AppID, SignName: c.o.SignName,
		TemplateId: c.o.TemplateID, SessionContext: r.ID}
	for _, t := range c.params {
		text, err := fill(t, r)
		if err != nil {
			return notify.Sent{}, err
		}
		request.TemplateParamSet = append(request.TemplateParamSet, text)
	}
	body, err := vendor.JSON(request)
	if err != nil {
		return notify.Sent{}, err
	}
	call := tc3{ID: c.o.SecretID, Key: c.o.SecretKey, Endpoint: c.o.Endpoint, Service: "sms", Action: "SendSms",
		Now:         time.Now(),
		ContentType: "application/json; charset=utf-8", Body: string(body)}
	header, err := call.sign()
	if err != nil {
		return notify.Sent{}, err
	}
	header.Set("X-TC-Version", "2021-01-11")
	header.Set("X-TC-Region", c.o.Region)
	a, err := c.Do(ctx, vendor.Call{URL: c.o.Endpoint, Header: header, Body: body, Secrets: []string{c.o.SecretKey,
		c.o.SecretID}})
	if err != nil {
		return notify.Sent{}, err
	}
	return judgeTencent(a)
}

// judgeTencent reads the answer: status 200 says nothing yet, and the call may succeed where the number fails.
func judgeTencent(a safehttp.Answer) (notify.Sent, error) {
	var got struct {
		Response struct {
			SendStatusSet []struct{ SerialNo, Code, Message string }
			Error         *struct{ Code, Message string }
		}
	}
	if err := a.JSON(&got); err != nil || got.Response.Error == nil && len(got.Response.SendStatusSet) == 0 {
		return notify.Sent{}, &notify.Error{Code: notify.CodeUnavailable, Text: "the answer is not Tencent's",
			Hint: "see Endpoint"}
	}
	if e := got.Response.Error; e != nil {
		return notify.Sent{}, tencentError(e.Code, e.Message)
	}
	s := got.Response.SendStatusSet[0]
	if s.Code == "Ok" {
		return notify.Sent{ID: s.SerialNo}, nil
	}
	return notify.Sent{}, tencentError(s.Code, s.Message)
}

func tencentError(code, text string) *notify.Error {
	e := &notify.Error{Code: notify.CodeInvalidMessage, Text: "Tencent error " + code + ": " + text}
	switch {
	case strings.HasPrefix(code, "LimitExceeded.PhoneNumberDailyLimit"):
		e.Code, e.Hint = notify.CodeInvalidTarget, "the number had its messages of today"
	case strings.HasPrefix(code, "LimitExceeded"), strings.HasPrefix(code, "RequestLimitExceeded"):
		e.Code, e.After = notify.CodeRateLimit, time.Minute
	case strings.HasPrefix(code, "AuthFailure"), strings.HasPrefix(code, "UnauthorizedOperation"),
		strings.HasPrefix(code, "FailedOperation.InsufficientBalance"):
		e.Code, e.Hint = notify.CodeAuth, "see the secret key, its rights and the balance"
	case strings.HasPrefix(code, "InternalError"), strings.HasPrefix(code, "ResourceUnavailable"):
		e.Code = notify.CodeUnavailable
	case strings.Contains(code, "PhoneNumber"):
		e.Code = notify.CodeInvalidTarget
	case strings.Contains(code, "ContainSensitiveWord"):
		e.Code = notify.CodeContent
	}
	return e
}

// tc3 is a call that is signed by TC3-HMAC-SHA256.
type tc3 struct {
	ID, Key           string
	Endpoint          string
	Service, Action   string
	Now               time.Time
	ContentType, Body string
}

// sign returns the headers of the call.
func (c tc3) sign() (http.Header, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, &notify.Error{Code: notify.CodeInvalidConfig, Text: "Endpoint is no URL", Hint: "correct it"}
	}
	const algorithm, names = "TC3-HMAC-SHA256", "content-type;host"
	canonical := "POST\n/\n\ncontent-type:" + c.ContentType + "\nhost:" + u.Host + "\n\n" + names + "\n" +
		hashed(c.Body)
	seconds, date := strconv.FormatInt(c.Now.Unix(), 10), c.Now.UTC().Format("2006-01-02")
	scope := date + "/" + c.Service + "/tc3_request"
	key := []byte("TC3" + c.Key)
	for _, part := range []string{date, c.Service, "tc3_request"} {
		key = keyed(key, part)
	}
	signature := hex.EncodeToString(keyed(key, algorithm+"\n"+seconds+"\n"+scope+"\n"+hashed(canonical)))
	return http.Header{
		"Content-Type":   {c.ContentType},
		"X-Tc-Action":    {c.Action},
		"X-Tc-Timestamp": {seconds},
		"Authorization": {fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%s",
			algorithm, c.ID, scope, names, signature)},
	}, nil
}

func keyed(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
