package wecom

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Topics that are used unless the configuration says otherwise.
const (
	Topic     = "qywx-chat-messages" // of messages, keyed by customer
	PullTopic = "qywx-pulls"         // of pull jobs, keyed by account
)

// Vendor is where the API of WeCom is.
const Vendor = "https://qyapi.weixin.qq.com"

// Config is what a pipeline needs to know. Its secrets are not printed.
type Config struct {
	// Corp is the corp id: whose callbacks are taken, and who asks for tokens.
	Corp string `json:"corp" yaml:"corp"`
	// Secret is that of the application that customer service belongs to.
	Secret Secret `json:"secret" yaml:"secret"`
	// Keys open callbacks: one pair, or two while they are changed.
	Keys []KeyPair `json:"keys" yaml:"keys"`
	// Accounts (open_kfid) are pulled by the schedule from the start; others once a callback has named them.
	Accounts []string `json:"accounts,omitempty" yaml:"accounts"`
	// Topic and PullTopic default to the constants of these names.
	Topic     string `json:"topic,omitempty" yaml:"topic"`
	PullTopic string `json:"pull_topic,omitempty" yaml:"pull_topic"`
	// Poll is how often accounts are pulled that no callback came for. Defaults to 1 minute; at least 10 s.
	Poll time.Duration `json:"poll,omitempty" yaml:"poll"`
	// Recognise is for how long a message is recognised that comes again. Defaults to Recognised. A broker that remembers
	// a number of ids (on disk ten million for each topic) needs a shorter time if more messages come within it.
	Recognise time.Duration `json:"recognise,omitempty" yaml:"recognise"`
	// VoiceFormat of files: VoiceAMR, the default, or VoiceSilk, which sounds better and is understood by fewer programs.
	VoiceFormat string `json:"voice_format,omitempty" yaml:"voice_format"`
	// Users of groups: a list of external_userids each for GroupVIP, GroupSuspicious and GroupWhitelist.
	Users map[string][]string `json:"users,omitempty" yaml:"users"`
	// Vendor is the address of the API, for a proxy or a test. Defaults to the constant of this name.
	Vendor string `json:"vendor,omitempty" yaml:"vendor"`
	// AllowPrivate are private networks in which Vendor may be. Defaults to none.
	AllowPrivate []netip.Prefix `json:"allow_private,omitempty" yaml:"allow_private"`
}

// Formats of voices.
const (
	VoiceAMR  = "amr"
	VoiceSilk = "silk"
)

// voiceFormats are what the vendor calls them.
var voiceFormats = map[string]int{"": 0, VoiceAMR: 0, VoiceSilk: 1}

// check says what is wrong with a configuration, or nil, and fills in its defaults.
func (c *Config) check() error {
	if c.Corp == "" || c.Secret == "" {
		return driver.NewError(ferry.ErrInvalid, "the configuration of WeCom has no corp id or no secret",
			"both are in the vendor's console; FERRY_WECOM_CORP and FERRY_WECOM_SECRET set them", nil)
	}
	if c.Topic == "" {
		c.Topic = Topic
	}
	if c.PullTopic == "" {
		c.PullTopic = PullTopic
	}
	if c.Vendor == "" {
		c.Vendor = Vendor
	}
	if c.Poll == 0 {
		c.Poll = time.Minute
	}
	if c.Recognise == 0 {
		c.Recognise = Recognised
	}
	if c.Recognise < time.Minute || c.Recognise > driver.MaxDedup {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("messages are to be recognised for %v", c.Recognise),
			fmt.Sprintf("use 1m to %v; after less than the three days that WeCom keeps a replay publishes twice",
				driver.MaxDedup),
			nil)
	}
	if c.Poll < 10*time.Second {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("accounts are to be pulled every %v", c.Poll),
			"use 10s or more: without a callback's token the vendor allows few pulls", nil)
	}
	if c.Topic == c.PullTopic {
		return driver.NewError(ferry.ErrInvalid, "messages and pull jobs have the same topic "+c.Topic, "give them two", nil)
	}
	return c.checkNames()
}

func (c *Config) checkNames() error {
	for _, topic := range []string{c.Topic, c.PullTopic} {
		if err := driver.CheckTopic(topic); err != nil {
			return err
		}
	}
	for _, account := range c.Accounts {
		if err := checkAccount(account); err != nil {
			return err
		}
	}
	if _, ok := voiceFormats[c.VoiceFormat]; !ok {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("there is no format of voices %.80q", c.VoiceFormat),
			"use "+VoiceAMR+" or "+VoiceSilk, nil)
	}
	for group := range c.Users {
		if !slices.Contains(listedGroups, group) {
			return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("there is no group of users %q", group),
				"use "+strings.Join(listedGroups, ", ")+"; everybody else is "+GroupNormal, nil)
		}
	}
	return nil
}

// maxAccount is longer than any open_kfid.
const maxAccount = 128

// checkAccount says what is wrong with an open_kfid, or nil: it becomes a key and the name of a value.
func checkAccount(account string) error {
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	if account == "" || len(account) > maxAccount || strings.ContainsFunc(account, strange) {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("%.80q is no open_kfid", account),
			"it looks like wkAJ2GCAAAZSfhHCt7IFSvLKtMPxyJTw", nil)
	}
	return nil
}

// FromEnvironment reads a configuration from variables: FERRY_WECOM_CORP, FERRY_WECOM_SECRET, FERRY_WECOM_TOKEN and
// FERRY_WECOM_AES_KEY, FERRY_WECOM_OLD_TOKEN and FERRY_WECOM_OLD_AES_KEY while keys are changed, FERRY_WECOM_ACCOUNTS
// (with commas), FERRY_WECOM_TOPIC, FERRY_WECOM_PULL_TOPIC, FERRY_WECOM_POLL,
// FERRY_WECOM_RECOGNISE, FERRY_WECOM_VOICE_FORMAT, FERRY_WECOM_VENDOR and FERRY_WECOM_ALLOW_PRIVATE (networks, with
// commas). With _FILE behind its name a variable names a file that has the value.
func FromEnvironment(lookup func(name string) (string, bool)) (Config, error) {
	e := environment{lookup: lookup}
	c := Config{
		Corp: e.get("CORP"), Secret: Secret(e.get("SECRET")), Accounts: e.list("ACCOUNTS"),
		Topic: e.get("TOPIC"), PullTopic: e.get("PULL_TOPIC"), Poll: e.duration("POLL"), Vendor: e.get("VENDOR"),
		Recognise: e.duration("RECOGNISE"), VoiceFormat: e.get("VOICE_FORMAT"), AllowPrivate: e.networks("ALLOW_PRIVATE"),
	}
	for _, which := range []string{"", "OLD_"} {
		p := KeyPair{Token: Secret(e.get(which + "TOKEN")), AESKey: Secret(e.get(which + "AES_KEY"))}
		if p != (KeyPair{}) {
			c.Keys = append(c.Keys, p)
		}
	}
	return c, e.err
}

// environment reads variables, and keeps the first thing that is wrong with them.
type environment struct {
	lookup func(name string) (string, bool)
	err    error
}

func (e *environment) get(name string) string {
	name = "FERRY_WECOM_" + name
	value, _ := e.lookup(name) // empty means not set
	path, _ := e.lookup(name + "_FILE")
	switch {
	case value != "" && path != "":
		e.wrong(name+" and "+name+"_FILE are both set", "set one of them", nil)
	case path != "":
		data, err := os.ReadFile(path)
		if err != nil {
			e.wrong("the file of "+name+"_FILE cannot be read", "see that it exists and who may read it", err)
		}
		value = string(data)
	}
	return strings.TrimSpace(value)
}

func (e *environment) list(name string) []string {
	return strings.FieldsFunc(e.get(name), func(r rune) bool { return r == ',' || r == ' ' })
}

func (e *environment) networks(name string) []netip.Prefix {
	var networks []netip.Prefix
	for _, text := range e.list(name) {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			e.wrong("FERRY_WECOM_"+name+" is no list of networks", "write it as 10.0.0.0/8,192.168.0.0/16", nil)
			return nil
		}
		networks = append(networks, network)
	}
	return networks
}

func (e *environment) duration(name string) time.Duration {
	text := e.get(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		e.wrong("FERRY_WECOM_"+name+" is no duration", "write it as 90s or 2m", nil)
	}
	return d
}

func (e *environment) wrong(text, hint string, cause error) {
	if e.err == nil {
		e.err = driver.NewError(ferry.ErrInvalid, text, hint, cause)
	}
}
