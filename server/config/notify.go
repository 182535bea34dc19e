package config

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/dingtalk"
	"github.com/ferrymq/ferry/notify/email"
	"github.com/ferrymq/ferry/notify/feishu"
	"github.com/ferrymq/ferry/notify/slack"
	"github.com/ferrymq/ferry/notify/sms"
	"github.com/ferrymq/ferry/notify/webhook"
	"github.com/ferrymq/ferry/notify/wecomrobot"
)

// Notify is the hub of notifications, which the server runs if there are channels.
type Notify struct {
	Topic       string                            `yaml:"topic"`
	Concurrency int                               `yaml:"concurrency"`
	Timeout     Duration                          `yaml:"timeout"`
	Keep        Duration                          `yaml:"keep"`
	Channels    map[string]Channel                `yaml:"channels"`
	Templates   map[string]notify.MessageTemplate `yaml:"templates"`
}

// Secret reads a secret by the name of its variable, and tells whether it is set.
type Secret func(name string) (value string, found bool, err error)

// Options makes the channels, and returns the options of the hub.
func (n Notify) Options(read Secret) (notify.Options, error) {
	o := notify.Options{Topic: n.Topic, Concurrency: n.Concurrency, Timeout: time.Duration(n.Timeout),
		Keep: time.Duration(n.Keep), Templates: n.Templates, Channels: map[string]notify.Channel{}}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(n.Channels)) {
		c, err := n.Channels[name].open(&secrets{prefix: "FERRY_NOTIFY_" + variable(name), read: read})
		if err != nil {
			errs = append(errs, fmt.Errorf("channel %q: %w", name, err))
			continue
		}
		o.Channels[name] = c
	}
	return o, errors.Join(errs...)
}

// variable is a name as a part of the name of a variable.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

// secrets are those of one channel.
type secrets struct {
	prefix string
	read   Secret
	err    error // the first one
}

// may returns a secret, or nothing if it is not set.
func (s *secrets) may(parts ...string) string {
	value, _, err := s.read(s.name(parts))
	if err != nil && s.err == nil {
		s.err = err
	}
	return value
}

// need returns a secret that must be set.
func (s *secrets) need(parts ...string) string {
	value := s.may(parts...)
	if name := s.name(parts); value == "" && s.err == nil {
		s.err = driver.NewError(driver.ErrInvalid, "its "+strings.ToLower(parts[len(parts)-1])+" is not set",
			"set "+name+", or "+name+"_FILE to the path of a file that holds it", nil)
	}
	return value
}

func (s *secrets) name(parts []string) string {
	name := s.prefix
	for _, p := range parts {
		name += "_" + variable(p)
	}
	return name
}

// Channel is one channel: a kind, and the keys of that kind.
type Channel struct{ kind channelKind }

// channelKind is what is configured of one kind of channel. Secrets are not: they are read when it is opened.
type channelKind interface {
	open(s *secrets) (notify.Channel, error)
}

func (c Channel) open(s *secrets) (notify.Channel, error) {
	opened, err := c.kind.open(s)
	if s.err != nil { // it says more than what is missing without the secret
		return nil, s.err
	}
	return opened, err
}

var channelKinds = map[string]func() channelKind{
	"email":      func() channelKind { return &emailKind{} },
	"feishu":     func() channelKind { return &robotKind{signs: true, make: newFeishu} },
	"dingtalk":   func() channelKind { return &robotKind{signs: true, make: newDingTalk} },
	"wecomrobot": func() channelKind { return &robotKind{make: newWeComRobot} },
	"slack":      func() channelKind { return &robotKind{make: newSlack} },
	"webhook":    func() channelKind { return &webhookKind{} },
	"aliyun":     func() channelKind { return &aliyunKind{} },
	"tencent":    func() channelKind { return &tencentKind{} },
	"twilio":     func() channelKind { return &twilioKind{} },
	"gateway":    func() channelKind { return &gatewayKind{} },
}

// UnmarshalYAML reads the keys that the kind has, and no others.
func (c *Channel) UnmarshalYAML(node ast.Node) error {
	var of struct {
		Kind string `yaml:"kind"`
	}
	known := strings.Join(slices.Sorted(maps.Keys(channelKinds)), ", ")
	if err := yaml.NodeToValue(node, &of); err != nil || of.Kind == "" {
		return wrongValue(node, "a channel needs a kind: "+known)
	}
	made, ok := channelKinds[of.Kind]
	if !ok {
		return wrongValue(node, "there is no such kind of channel: use "+known)
	}
	c.kind = made()
	return decode(node, c.kind, "a channel cannot be read: docs/notify.md shows one of each kind")
}

// calls says which servers a channel may call.
type calls struct {
	Kind         string         `yaml:"kind"`
	AllowPrivate []netip.Prefix `yaml:"allow_private"`
}

func (c calls) http() notify.HTTP { return notify.HTTP{AllowPrivate: c.AllowPrivate} }

// Rate is how many sends a destination takes within a time.
type Rate struct {
	Sends int      `yaml:"sends"`
	Per   Duration `yaml:"per"`
}

// UnmarshalYAML reads a rate, both parts of which are needed.
func (r *Rate) UnmarshalYAML(node ast.Node) error {
	type plain Rate
	const like = "a rate looks like {sends: 5, per: 1s}"
	if err := decode(node, (*plain)(r), like); err != nil {
		return err
	}
	if r.Sends < 1 || r.Per <= 0 {
		return wrongValue(node, like)
	}
	return nil
}

func ratesOf(all []Rate) []notify.Rate {
	var rates []notify.Rate
	for _, r := range all {
		rates = append(rates, notify.Rate{Sends: r.Sends, Per: time.Duration(r.Per)})
	}
	return rates
}

type emailKind struct {
	Kind     string `yaml:"kind"`
	Host     string `yaml:"host"`
	Port     int    `yaml:"port"`
	TLS      bool   `yaml:"tls"`
	Username string `yaml:"username"`
	From     string `yaml:"from"`
	Rates    []Rate `yaml:"rates"`
}

func (k *emailKind) open(s *secrets) (notify.Channel, error) {
	o := email.Options{Host: k.Host, Port: k.Port, TLS: k.TLS, Username: k.Username, From: k.From,
		Rates: ratesOf(k.Rates)}
	if k.Username != "" {
		o.Password = s.need("password")
	}
	return email.New(o)
}

// robot is what may be shown of a robot: its address and its secret are secrets.
type robot struct {
	Keyword  string `yaml:"keyword"`
	Unsigned bool   `yaml:"unsigned"`
}

// robotKind is a vendor whose chats have robots, or webhooks.
type robotKind struct {
	Calls  calls            `yaml:",inline"`
	Robots map[string]robot `yaml:"robots"`

	signs bool
	make  func(robots map[string]notify.Robot, h notify.HTTP) (notify.Channel, error)
}

func (k *robotKind) open(s *secrets) (notify.Channel, error) {
	robots := map[string]notify.Robot{}
	for name, r := range k.Robots {
		made := notify.Robot{URL: s.need(name, "url"), Keyword: r.Keyword, Unsigned: r.Unsigned}
		if k.signs && !r.Unsigned {
			made.Secret = s.need(name, "secret")
		}
		robots[name] = made
	}
	return k.make(robots, k.Calls.http())
}

func newFeishu(robots map[string]notify.Robot, h notify.HTTP) (notify.Channel, error) {
	return feishu.New(feishu.Options{Robots: robots, HTTP: h})
}

func newDingTalk(robots map[string]notify.Robot, h notify.HTTP) (notify.Channel, error) {
	return dingtalk.New(dingtalk.Options{Robots: robots, HTTP: h})
}

func newWeComRobot(robots map[string]notify.Robot, h notify.HTTP) (notify.Channel, error) {
	return wecomrobot.New(wecomrobot.Options{Robots: robots, HTTP: h})
}

func newSlack(robots map[string]notify.Robot, h notify.HTTP) (notify.Channel, error) {
	return slack.New(slack.Options{Webhooks: robots, HTTP: h})
}

type webhookKind struct {
	Calls     calls    `yaml:",inline"`
	Endpoints []string `yaml:"endpoints"`
	Unsigned  bool     `yaml:"unsigned"`
	Rates     []Rate   `yaml:"rates"`
}

func (k *webhookKind) open(s *secrets) (notify.Channel, error) {
	o := webhook.Options{Unsigned: k.Unsigned, Rates: ratesOf(k.Rates), HTTP: k.Calls.http(), Secret: s.may("secret"),
		Endpoints: map[string]notify.Robot{}}
	for _, name := range k.Endpoints {
		o.Endpoints[name] = notify.Robot{URL: s.need(name, "url"), Secret: s.may(name, "secret")}
	}
	return webhook.New(o)
}

type aliyunKind struct {
	Calls        calls             `yaml:",inline"`
	SignName     string            `yaml:"sign_name"`
	TemplateCode string            `yaml:"template_code"`
	Params       map[string]string `yaml:"params"`
	Endpoint     string            `yaml:"endpoint"`
}

func (k *aliyunKind) open(s *secrets) (notify.Channel, error) {
	return sms.NewAliyun(sms.AliyunOptions{AccessKeyID: s.need("key_id"), AccessKeySecret: s.need("key_secret"),
		SignName: k.SignName, TemplateCode: k.TemplateCode, Params: k.Params, Endpoint: k.Endpoint, HTTP: k.Calls.http()})
}

type tencentKind struct {
	Calls      calls    `yaml:",inline"`
	AppID      string   `yaml:"app_id"`
	SignName   string   `yaml:"sign_name"`
	TemplateID string   `yaml:"template_id"`
	Params     []string `yaml:"params"`
	Region     string   `yaml:"region"`
	Endpoint   string   `yaml:"endpoint"`
}

func (k *tencentKind) open(s *secrets) (notify.Channel, error) {
	return sms.NewTencent(sms.TencentOptions{SecretID: s.need("key_id"), SecretKey: s.need("key_secret"),
		AppID: k.AppID, SignName: k.SignName, TemplateID: k.TemplateID, Params: k.Params, Region: k.Region,
		Endpoint: k.Endpoint, HTTP: k.Calls.http()})
}

type twilioKind struct {
	Calls      calls  `yaml:",inline"`
	AccountSID string `yaml:"account_sid"`
	From       string `yaml:"from"`
	Endpoint   string `yaml:"endpoint"`
}

func (k *twilioKind) open(s *secrets) (notify.Channel, error) {
	return sms.NewTwilio(sms.TwilioOptions{AccountSID: k.AccountSID, AuthToken: s.need("token"), From: k.From,
		Endpoint: k.Endpoint, HTTP: k.Calls.http()})
}

// gatewayKind is a server of SMS that takes JSON. Its key is the value of the header that Header names.
type gatewayKind struct {
	Calls   calls  `yaml:",inline"`
	URL     string `yaml:"url"`
	Header  string `yaml:"header"`
	Body    string `yaml:"body"`
	Success string `yaml:"success"`
	Rates   []Rate `yaml:"rates"`
}

func (k *gatewayKind) open(s *secrets) (notify.Channel, error) {
	o := sms.GatewayOptions{URL: k.URL, Body: k.Body, Success: k.Success, Rates: ratesOf(k.Rates), HTTP: k.Calls.http()}
	if k.Header != "" {
		o.Header = map[string]string{k.Header: s.need("key")}
	}
	return sms.NewGateway(o)
}
