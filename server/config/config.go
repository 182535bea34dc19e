// Package config reads ferry.yaml, the configuration of a server.
//
// It is strict: a key that is not known, a value of another type or one out of range is refused, with the line and what
// to write instead. Secrets are not in it: they come from the environment or from files, so that the file can be shown.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/ferrymq/ferry/admin"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/auth/oidc"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/server"
)

// File is what a ferry.yaml says.
type File struct {
	// Broker is the URL of the broker, without a password.
	Broker string `yaml:"broker"`
	// Store is the URL of the guard store that workers share, without a password.
	Store string `yaml:"store"`
	// Environment names the installation, for people.
	Environment string `yaml:"environment"`
	// Masks say what is never shown of messages.
	Masks  []admin.Mask `yaml:"masks"`
	Listen string       `yaml:"listen"`
	// URL is where browsers find the server, if that is not where it listens.
	URL   string   `yaml:"url"`
	Hosts []string `yaml:"hosts"`
	// Name is that of the server among the members of the broker.
	Name        string   `yaml:"name"`
	Drain       Duration `yaml:"drain"`
	StopTimeout Duration `yaml:"stop_timeout"`
	TLS         TLS      `yaml:"tls"`
	Sessions    Sessions `yaml:"sessions"`
	Limits      Limits   `yaml:"limits"`
	Log         Log      `yaml:"log"`
	OIDC        OIDC     `yaml:"oidc"`
	WeCom       WeCom    `yaml:"wecom"`
	Notify      Notify   `yaml:"notify"`
	Alerts      Alerts   `yaml:"alerts"`
}

// TLS names the files of the certificate.
type TLS struct {
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
}

// Sessions say how long a login is good.
type Sessions struct {
	Idle Duration `yaml:"idle"`
	Max  Duration `yaml:"max"`
}

// Limits are those of the server.
type Limits struct {
	Body        Size     `yaml:"body"`
	Connections int      `yaml:"connections"`
	Header      Duration `yaml:"header"`
	Read        Duration `yaml:"read"`
	Write       Duration `yaml:"write"`
	Rate        float64  `yaml:"rate"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // text or json
}

// OIDC is the identity provider. Its secret is in FERRY_OIDC_SECRET.
type OIDC struct {
	Issuer      string                  `yaml:"issuer"`
	ClientID    string                  `yaml:"client_id"`
	Scopes      []string                `yaml:"scopes"`
	NameClaim   string                  `yaml:"name_claim"`
	GroupsClaim string                  `yaml:"groups_claim"`
	Groups      map[string][]auth.Grant `yaml:"groups"`
}

// WeCom is customer service of WeCom, which the server takes callbacks of and pulls, if there is a corp. Its secrets
// are in FERRY_WECOM_SECRET, FERRY_WECOM_TOKEN and FERRY_WECOM_AES_KEY.
type WeCom struct {
	Corp      string   `yaml:"corp"`
	Accounts  []string `yaml:"accounts"`
	Topic     string   `yaml:"topic"`
	PullTopic string   `yaml:"pull_topic"`
	Poll      Duration `yaml:"poll"`
	Vendor    string   `yaml:"vendor"`
	// Recognise is for how long a message is recognised that comes again.
	Recognise Duration `yaml:"recognise"`
	// VoiceFormat is amr or silk.
	VoiceFormat string `yaml:"voice_format"`
	// AllowPrivate are networks in which the vendor's address may be.
	AllowPrivate []netip.Prefix `yaml:"allow_private"`
	// Users are external_userids by group: vip, suspicious, whitelist.
	Users map[string][]string `yaml:"users"`
}

// maxFile bounds what is read: a configuration is not long.
const maxFile = 1 << 20

// Read reads a file, and checks it.
func Read(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, driver.NewError(driver.ErrInvalid, "the configuration cannot be read",
			"check the path and who may read it", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return File{}, driver.NewError(driver.ErrInvalid, "the configuration cannot be read", "is it a file?", err)
	}
	if len(data) > maxFile {
		return File{}, driver.NewError(driver.ErrInvalid, path+" is too long for a configuration",
			"is it another file?", nil)
	}
	return Parse(path, data)
}

// Parse reads the text of a file; name stands in errors.
func Parse(name string, data []byte) (File, error) {
	var f File
	err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&f)
	if err != nil && !errors.Is(err, io.EOF) { // an empty file says nothing, which is fine
		return File{}, explain(name, err)
	}
	if err := f.check(); err != nil {
		return File{}, err
	}
	return f, nil
}

// explain returns an error of the YAML package with its line. The text of the file is not repeated: there may be a
// secret in it all the same.
func explain(name string, err error) error {
	line, text := 0, "it is no YAML of the expected form"
	hint := "docs/server.md lists every key with an example; 'ferry config check' says whether a file is good"
	var known yaml.Error
	if errors.As(err, &known) {
		if token := known.GetToken(); token != nil && token.Position != nil {
			line = token.Position.Line
		}
	}
	var unknown *yaml.UnknownFieldError
	var double *yaml.DuplicateKeyError
	var typed *yaml.TypeError
	var value *valueError
	switch {
	case errors.As(err, &value):
		line, text, hint = value.line, value.text, cmp.Or(value.hint, hint)
	case errors.As(err, &unknown):
		text = unknown.GetMessage()
		hint = cmp.Or(elsewhere[unknown.GetToken().Value], hint)
	case errors.As(err, &double):
		text = double.GetMessage()
	case errors.As(err, &typed):
		text = fmt.Sprintf("a %v is expected here", typed.DstType)
	}
	return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%s:%d: %s", name, line, text), hint, nil)
}

// check says what is wrong beyond the form.
func (f File) check() error {
	bad := func(key, text, hint string) error {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%s of the configuration %s", key, text), hint, nil)
	}
	for key, text := range map[string]string{"broker": f.Broker, "store": f.Store} {
		if u, err := url.Parse(text); err != nil || hasPassword(u) {
			name := "FERRY_" + strings.ToUpper(key)
			return bad(key, "is no URL, or holds a password",
				"put one with a password into "+name+" or a file named by "+name+"_FILE")
		}
	}
	for _, m := range f.Masks {
		if err := auth.CheckPatterns(m.Topics); err != nil {
			return err
		}
	}
	if u, err := url.Parse(f.URL); f.URL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" ||
		u.Host == "" || u.Path != "" && u.Path != "/") {
		return bad("url", "is not where browsers could find a server", "write https://ferry.example.com for example")
	}
	if _, err := f.Log.level(); err != nil {
		return bad("log.level", "is not known", "use debug, info, warn or error")
	}
	if f.Log.Format != "" && f.Log.Format != "text" && f.Log.Format != "json" {
		return bad("log.format", "is not known", "use text or json")
	}
	if f.Limits.Body < 0 || f.Limits.Connections < 0 || f.Limits.Rate < 0 {
		return bad("a limit", "is negative", "leave it out for the default")
	}
	if err := f.Alerts.check(f.Notify); err != nil {
		return err
	}
	if f.OIDC.Issuer == "" {
		return nil
	}
	_, err := oidc.New(f.oidc(auth.Secret{}))
	return err
}

func hasPassword(u *url.URL) bool {
	_, has := u.User.Password() // of nobody there is none
	return has
}

func (l Log) level() (slog.Level, error) {
	var level slog.Level
	if l.Level == "" {
		return level, nil
	}
	err := level.UnmarshalText([]byte(l.Level))
	return level, err
}

// Level returns the level of the log.
func (f File) Level() slog.Level {
	level, _ := f.Log.level() // which was checked
	return level
}

// Handler returns the form of the log, at a level that can be changed later.
func (f File) Handler(w io.Writer, level slog.Leveler) slog.Handler {
	if f.Log.Format == "json" {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	}
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
}

func (f File) oidc(secret auth.Secret) oidc.Options {
	o := f.OIDC
	return oidc.Options{Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: secret, Scopes: o.Scopes,
		NameClaim:   o.NameClaim,
		GroupsClaim: o.GroupsClaim, Groups: o.Groups}
}

// ServerLimits returns the limits of the server.
func (f File) ServerLimits() server.Limits {
	l := f.Limits
	return server.Limits{Body: int64(l.Body), Connections: l.Connections, Header: time.Duration(l.Header),
		Read:  time.Duration(l.Read),
		Write: time.Duration(l.Write), Rate: l.Rate}
}

// Options returns the options of a server, all but its broker, mounts and logger. The secret is that of OIDC.
func (f File) Options(secret auth.Secret) server.Options {
	return server.Options{
		Address: f.Listen, Hosts: f.Hosts, URL: f.URL, Name: f.Name, Drain: time.Duration(f.Drain),
		StopTimeout: time.Duration(f.StopTimeout),
		Certificate: server.Certificate{File: f.TLS.Certificate, Key: f.TLS.Key},
		Sessions:    auth.SessionOptions{Idle: time.Duration(f.Sessions.Idle), Max: time.Duration(f.Sessions.Max)},
		Limits:      f.ServerLimits(), OIDC: f.oidc(secret),
	}
}
