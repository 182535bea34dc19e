package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

func TestWeCom(t *testing.T) {
	t.Parallel()
	vendor := wecomtest.Start(wecomtest.Options{})
	defer vendor.Close()
	d := newDesk(t)
	d.fails(exitUsage, "no corp id", "wecom", "check")
	config := vendor.Config()
	secret := string(config.Secret)
	for name, value := range map[string]string{
		"CORP": config.Corp, "SECRET": secret, "VENDOR": config.Vendor, "ACCOUNTS": "kf1,kf2", "ALLOW_PRIVATE": "127.0.0.0/8",
	} {
		d.env["FERRY_WECOM_"+name] = value
	}
	d.has(d.ok("wecom", "cursor"), "No account was pulled yet.")
	d.has(d.ok("wecom", "pull", "kf1"), "kf1: pull asked for")
	d.has(d.ok("wecom", "replay", "kf1", "--cursor", "c1"), "kf1: replay asked for")
	d.has(d.ok("wecom", "cursor"), "kf1", "c1")
	d.has(d.ok("wecom", "cursor", "kf1", "--output", "json"), `"cursor": "c1"`)
	d.has(d.ok("wecom", "check"), "WeCom takes the credentials of "+config.Corp, "2 accounts, 2 pulls wait")
	d.has(d.ok("wecom", "check", "--output", "json"), `"account": "kf2"`) // overdue: never pulled
	d.fails(exitUsage, "is no open_kfid", "wecom", "pull", "a b")

	file := filepath.Join(t.TempDir(), "ferry.yaml")
	text := "wecom: {corp: another, accounts: [kf3], poll: 10s}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.fails(exitUsage, "ferry.yaml", "wecom", "check", "--config", file+"x")
	delete(d.env, "FERRY_WECOM_ACCOUNTS") // variables count more
	d.has(d.ok("wecom", "check", "--config", file), "of "+config.Corp, "2 accounts")
	d.has(d.ok("wecom", "check", "--config", file, "--output", "json"), `"account": "kf3"`)

	d.env["FERRY_WECOM_SECRET"] = secret + "x"
	r := d.run("wecom", "check")
	if r.code != exitFailure || !strings.Contains(r.err, "40001") || strings.Contains(r.out+r.err, secret) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// TestProblemsOfWeCom: an account that is not pulled is a problem of the server.
func TestProblemsOfWeCom(t *testing.T) {
	t.Parallel()
	if got := wecomProblems(nil)(t.Context()); len(got) != 0 {
		t.Errorf("without a pipeline: %v", got)
	}
	synctest.Test(t, func(t *testing.T) {
		b, err := memory.Open(t.Context(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.Close(context.Background()) }()
		p, err := wecom.New(b, wecom.Config{Corp: "ww1", Secret: "secret", Accounts: []string{"kf1", "kf2"}}, wecom.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.SetCursor(t.Context(), "kf1", "c1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		got := strings.Join(wecomProblems(p)(t.Context()), "; ")
		want := "account kf1 of WeCom: it was last pulled 6m0s ago; account kf2 of WeCom: it was never pulled"
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	})
}

// TestServeTakesCallbacks: with a corp in its file the server takes callbacks, and pulls what they are about.
func TestServeTakesCallbacks(t *testing.T) {
	t.Parallel()
	vendor := wecomtest.Start(wecomtest.Options{})
	defer vendor.Close()
	config := vendor.Config()
	file := filepath.Join(t.TempDir(), "ferry.yaml")
	text := "broker: memory://\nlisten: 127.0.0.1:0\nwecom: {corp: " + config.Corp + ", vendor: \"" + config.Vendor +
		"\", allow_private: [127.0.0.0/8]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, []string{"FERRY_WECOM_SECRET=" + string(config.Secret),
		"FERRY_WECOM_TOKEN=" + string(config.Keys[0].Token),
		"FERRY_WECOM_AES_KEY=" + string(config.Keys[0].AESKey)}, "serve", "--config", file)
	if err := vendor.Verify(t.Context(), s.url+wecomPath); err != nil {
		t.Fatal(err)
	}
	vendor.Say("kf1", "ann", "hello")
	callback := vendor.Callback("kf1")
	forged := callback
	forged.Signature = "0"
	for _, step := range []struct {
		c      wecomtest.Callback
		status int
	}{{callback, http.StatusOK}, {forged, http.StatusForbidden}} {
		if status, err := step.c.Send(t.Context(), s.url+wecomPath); err != nil || status != step.status {
			t.Errorf("%d, %v; want %d", status, err, step.status)
		}
	}
	c := browser(t)
	s.logIn(c)
	const pulled = `ferry_wecom_messages_total{broker="default",result="published"} 1`
	for metrics := ""; !strings.Contains(metrics, pulled); {
		time.Sleep(20 * time.Millisecond)
		_, metrics = s.get(c, "/metrics")
	}
	for _, secret := range []wecom.Secret{config.Secret, config.Keys[0].Token, config.Keys[0].AESKey} {
		if log := s.logged(); strings.Contains(log, string(secret)) {
			t.Error(log)
		}
	}
}
