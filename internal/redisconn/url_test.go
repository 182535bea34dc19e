package redisconn

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

func TestConnectReadsURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://":                               "[localhost:6379] db 0 user  password  tls false",
		"redis://me:pw@host/3":                   "[host:6379] db 3 user me password pw tls false",
		"redis://:p%40ss@[::1]:7000":             "[[::1]:7000] db 0 user  password p@ss tls false",
		"rediss://host?server_name=x":            "[host:6379] db 0 user  password  tls true",
		"redis+sentinel://a,b:1/main/2":          "[a:26379 b:1] db 2 user  password  tls false master main",
		"rediss+cluster://a,b?pool=7&timeout=2s": "[a:6379 b:6379] db 0 user  password  tls true pool 7 timeout 2s",
	} {
		a, err := parseURL(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		o := a.options
		got := fmt.Sprintf("%v db %d user %s password %s tls %v", o.Addrs, o.DB, o.Username, o.Password, o.TLSConfig != nil)
		if o.MasterName != "" {
			got += " master " + o.MasterName
		}
		if o.PoolSize != 0 {
			got += fmt.Sprintf(" pool %d timeout %v", o.PoolSize, o.ReadTimeout)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
		c, err := Connect(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if _, cluster := c.(*goredis.ClusterClient); cluster != strings.Contains(url, "+cluster") {
			t.Errorf("%s gives a %T", url, c)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What is wrong with a URL is said with a hint, and without its secrets.
func TestConnectRefusesURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "canary7", "http://canary7@host", "redis+x://canary7@host", "redis://:canary7@a,b", "redis://:canary7@host:x",
		"redis://:canary7@host/x",
		"redis://:canary7@host/-1", "redis+cluster://:canary7@host/1", "redis+sentinel://:canary7@host",
		"redis://:canary7@host?pool=0", "redis://:canary7@host?pool=1&pool=2",
		"redis://:canary7@host?timeout=x", "redis://:canary7@host?protocol=4", "redis://:canary7@host?ca=x",
		"rediss://:canary7@host?ca=/nonexistent",
		"rediss://:canary7@host?cert=/nonexistent", "redis://:canary7@host?unknown=1", "redis://:canary7@host#x",
		"redis://:canary7%zz@host",
	} {
		_, err := Connect(url)
		var ours *driver.Error
		if !errors.Is(err, driver.ErrInvalid) || !errors.As(err, &ours) || ours.Hint == "" ||
			strings.Contains(err.Error(), "canary7") {
			t.Errorf("%q gives %v; want ErrInvalid with a hint and without the password", url, err)
		}
	}
}

// What the server refused was not applied; what it did not answer is unknown.
func TestClassify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"OOM command not allowed":                 driver.ErrFull,
		"LOADING Redis is loading":                driver.ErrNotApplied,
		"READONLY You can't write":                driver.ErrNotApplied,
		"CLUSTERDOWN Hash slot not served":        driver.ErrNotApplied,
		"TRYAGAIN Multiple keys request":          driver.ErrNotApplied,
		"NOPERM this user has no permissions":     driver.ErrNotApplied,
		"ERR Error running script: -OOM command ": driver.ErrFull,
		"ERR something else":                      driver.ErrNotApplied,
	} {
		if err := Classify(reply(text)); !errors.Is(err, want) {
			t.Errorf("%q gives %v, want %v", text, err, want)
		}
	}
	if err := Classify(errors.New("read: connection reset by peer")); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("a broken connection gives %v", err)
	}
	if err := Classify(nil); err != nil {
		t.Errorf("nil gives %v", err)
	}
	c := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1", DialTimeout: 100 * time.Millisecond,
		DialerRetries: 1, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	s := NewScript("return {}")
	if _, err := s.Run(t.Context(), c, []string{"k"}); !errors.Is(err, driver.ErrNotApplied) {
		t.Errorf("no server gives %v, want ErrNotApplied", err)
	}
}

// reply is an error as the server answers it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}
