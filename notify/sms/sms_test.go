package sms_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
	"github.com/ferrymq/ferry/notify/sms"
)

const phone = "+8613800138000"

func rendered() notify.Rendered {
	return notify.Rendered{ID: "m/0/0", To: phone, Title: `Disk "full"`, Body: "b", Data: map[string]string{"code": "7"}}
}

func closeAfter(t *testing.T, c interface{ Close() error }) { t.Cleanup(func() { _ = c.Close() }) }

func TestAliyun(t *testing.T) {
	for answer, want := range map[string]notify.Code{
		`{"Code":"OK","BizId":"9"}`:                           "",
		`{"Code":"isv.BUSINESS_LIMIT_CONTROL","Message":"m"}`: notify.CodeRateLimit,
		`{"Code":"isv.MOBILE_NUMBER_ILLEGAL","Message":"m"}`:  notify.CodeInvalidTarget,
		`{"Code":"SignatureDoesNotMatch","Message":"m"}`:      notify.CodeAuth,
		`{"Code":"isp.SYSTEM_ERROR","Message":"m"}`:           notify.CodeUnavailable,
		`{"Code":"isv.INVALID_PARAMETERS","Message":"m"}`:     notify.CodeInvalidMessage,
		`[]`: notify.CodeUnavailable,
	} {
		v := vendortest.New(t, func(r *http.Request, _ []byte) (int, string) {
			q := r.URL.Query()
			if q.Get("PhoneNumbers") != phone || q.Get("TemplateParam") != `{"content":"Disk \"full\" 7"}` ||
				!strings.HasPrefix(r.Header.Get("Authorization"), "ACS3-HMAC-SHA256 Credential=id,") {
				t.Errorf("%v, %v arrived", q, r.Header)
			}
			return 200, answer
		})
		c, err := sms.NewAliyun(sms.AliyunOptions{AccessKeyID: "id", AccessKeySecret: vendortest.Secret, SignName: "签名",
			TemplateCode: "SMS_1", Params: map[string]string{"content": "{title} {code}"}, Endpoint: v.URL,
			HTTP: vendortest.Local})
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, c)
		sent, err := c.Send(t.Context(), rendered())
		vendortest.WantCode(t, err, want)
		if want == "" && sent.ID != "9" {
			t.Errorf("sent %+v", sent)
		}
	}
}

func TestTencent(t *testing.T) {
	for answer, want := range map[string]notify.Code{
		`"SendStatusSet":[{"SerialNo":"9","Code":"Ok"}]`:                                      "",
		`"SendStatusSet":[{"Code":"LimitExceeded.PhoneNumberThirtySecondLimit"}]`:             notify.CodeRateLimit,
		`"SendStatusSet":[{"Code":"InvalidParameterValue.IncorrectPhoneNumber"}]`:             notify.CodeInvalidTarget,
		`"Error":{"Code":"AuthFailure.SignatureFailure","Message":"m"},"RequestId":"r"`:       notify.CodeAuth,
		`"Error":{"Code":"InternalError.OtherError","Message":"m"},"RequestId":"r"`:           notify.CodeUnavailable,
		`"SendStatusSet":[{"Code":"FailedOperation.ContainSensitiveWord","Message":"words"}]`: notify.CodeContent,
		``: notify.CodeUnavailable,
	} {
		v := vendortest.New(t, vendortest.Always(200, `{"Response":{`+answer+`}}`))
		c, err := sms.NewTencent(sms.TencentOptions{SecretID: "id", SecretKey: vendortest.Secret, AppID: "1400",
			SignName:   "签名",
			TemplateID: "1", Params: []string{"{title}", "{code}"}, Endpoint: v.URL, HTTP: vendortest.Local})
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, c)
		sent, err := c.Send(t.Context(), rendered())
		vendortest.WantCode(t, err, want)
		if want == "" && sent.ID != "9" {
			t.Errorf("sent %+v", sent)
		}
		var m struct{ PhoneNumberSet, TemplateParamSet []string }
		if r := v.Last(&m); m.PhoneNumberSet[0] != phone || m.TemplateParamSet[1] != "7" ||
			r.Header.Get("X-TC-Version") == "" {
			t.Errorf("%+v arrived", m)
		}
	}
}

func TestTwilio(t *testing.T) {
	for _, c := range []struct {
		status int
		answer string
		want   notify.Code
	}{
		{201, `{"sid":"SM9"}`, ""},
		{400, `{"code":21211,"message":"The 'To' number is not valid"}`, notify.CodeInvalidTarget},
		{401, `{"code":20003,"message":"Authenticate"}`, notify.CodeAuth},
		{429, `{"code":20429,"message":"Too Many Requests"}`, notify.CodeRateLimit},
		{503, `oops`, notify.CodeUnavailable},
	} {
		v := vendortest.New(t, func(r *http.Request, body []byte) (int, string) {
			user, token, _ := r.BasicAuth()
			if user != "AC1" || token != vendortest.Secret || !strings.Contains(string(body), "To=%2B8613800138000") {
				t.Errorf("%s from %s arrived", body, user)
			}
			return c.status, c.answer
		})
		ch, err := sms.NewTwilio(sms.TwilioOptions{AccountSID: "AC1", AuthToken: vendortest.Secret, From: "+1500",
			Endpoint: v.URL,
			HTTP:     vendortest.Local})
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, ch)
		sent, err := ch.Send(t.Context(), rendered())
		vendortest.WantCode(t, err, c.want)
		if c.want == "" && sent.ID != "SM9" {
			t.Errorf("sent %+v", sent)
		}
	}
}

func TestGateway(t *testing.T) {
	for answer, want := range map[string]notify.Code{`{"ok":true}`: "", `{"ok":false}`: notify.CodeUnavailable} {
		v := vendortest.New(t, vendortest.Always(200, answer))
		c, err := sms.NewGateway(sms.GatewayOptions{URL: v.URL, Header: map[string]string{"X-Key": vendortest.Secret},
			Body: `{{"to": "{to}", "text": "{title}"}}`, Success: `"ok":true`, HTTP: vendortest.Local})
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, c)
		_, err = c.Send(t.Context(), rendered())
		vendortest.WantCode(t, err, want)
		var m map[string]string
		if r := v.Last(&m); m["text"] != `Disk "full"` || r.Header.Get("Idempotency-Key") != "m/0/0" {
			t.Errorf("%+v arrived", m)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	check := func(name string, err error) {
		if !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := sms.NewAliyun(sms.AliyunOptions{AccessKeyID: "id", SignName: "s", TemplateCode: "t"})
	check("no secret", err)
	_, err = sms.NewAliyun(sms.AliyunOptions{AccessKeyID: "id", AccessKeySecret: "s", SignName: "s", TemplateCode: "t",
		Params: map[string]string{"a": "{"}})
	check("parameter", err)
	_, err = sms.NewTencent(sms.TencentOptions{SecretID: "id"})
	check("no key", err)
	_, err = sms.NewTwilio(sms.TwilioOptions{AccountSID: "id", From: "1"})
	check("no token", err)
	_, err = sms.NewGateway(sms.GatewayOptions{URL: "https://example.com", Body: `{{"to": {to}`})
	check("no JSON", err)
	_, err = sms.NewGateway(sms.GatewayOptions{URL: "https://example.com", Body: `{{}}`,
		Header: map[string]string{"a": "b\r\nc"}})
	check("header", err)
	c, err := sms.NewGateway(sms.GatewayOptions{URL: "https://example.com", Body: `{{}}`})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"", "abc", "+1 234", "13800138000\r\n"} {
		check(to, c.Check(to))
	}
	if c.Check(phone) != nil {
		t.Error("a good number is refused")
	}
}
