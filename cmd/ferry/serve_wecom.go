package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/server"
	"github.com/ferrymq/ferry/server/config"
	"github.com/ferrymq/ferry/wecom"
)

// wecomPath is where the server takes callbacks of WeCom.
const wecomPath = "/wecom/callback"

// wecomConfig is what the file says, with the variables in it: secrets are only there, and they count more.
func wecomConfig(f config.WeCom, env func(string) (string, bool)) (wecom.Config, error) {
	c, err := wecom.FromEnvironment(env)
	c.Corp, c.Vendor = cmp.Or(c.Corp, f.Corp), cmp.Or(c.Vendor, f.Vendor)
	c.Topic, c.PullTopic = cmp.Or(c.Topic, f.Topic), cmp.Or(c.PullTopic, f.PullTopic)
	c.Recognise = cmp.Or(c.Recognise, time.Duration(f.Recognise))
	c.Poll, c.VoiceFormat = cmp.Or(c.Poll, time.Duration(f.Poll)), cmp.Or(c.VoiceFormat, f.VoiceFormat)
	if len(c.Accounts) == 0 {
		c.Accounts = f.Accounts
	}
	if len(c.AllowPrivate) == 0 {
		c.AllowPrivate = f.AllowPrivate
	}
	c.Users = f.Users
	return c, err
}

// openWeCom returns the pipeline of a server; nil if it has no corp.
func openWeCom(b *ferry.Broker, f config.WeCom, env func(string) (string, bool)) (*wecom.Pipeline, error) {
	c, err := wecomConfig(f, env)
	if err != nil || c.Corp == "" {
		return nil, err
	}
	if len(c.Keys) == 0 {
		return nil, usage("there are no keys for callbacks of WeCom",
			"set FERRY_WECOM_TOKEN and FERRY_WECOM_AES_KEY, or those with _FILE")
	}
	return wecom.New(b, c, wecom.Options{})
}

// wecomProblems tells which accounts are not pulled. There are none without a pipeline.
func wecomProblems(p *wecom.Pipeline) func(ctx context.Context) []string {
	return func(ctx context.Context) []string {
		if p == nil {
			return nil
		}
		overdue, err := p.Overdue(ctx)
		if err != nil {
			return nil // of the broker is told anyway
		}
		problems := make([]string, len(overdue))
		for i, c := range overdue {
			problems[i] = "account " + c.Account + " of WeCom: it was never pulled"
			if !c.Pulled.IsZero() {
				problems[i] = fmt.Sprintf("account %s of WeCom: it was last pulled %v ago", c.Account,
					time.Since(c.Pulled).Round(time.Second))
			}
		}
		return problems
	}
}

// wecomMount takes callbacks, which carry a signature of their own.
func wecomMount(p *wecom.Pipeline) server.Mount {
	return server.Mount{Path: wecomPath, Handler: p.Callback(), Public: true, Programs: true}
}
