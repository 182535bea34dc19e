package main

import (
	"strings"
	"testing"

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
	d.fails(exitUsage, "is no open_kfid", "wecom", "pull", "a b")

	d.env["FERRY_WECOM_SECRET"] = secret + "x"
	r := d.run("wecom", "check")
	if r.code != exitFailure || !strings.Contains(r.err, "40001") || strings.Contains(r.out+r.err, secret) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
