package redis_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// TLS with a certificate on both sides works by URL alone; an authority that is not known, or no certificate, is
// refused.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t, redistest.Options{TLS: true, ClientCerts: true, Password: "hunter2"})
	ca, cert, key := s.TLSFiles()
	address := "rediss://:hunter2@" + s.Addr()
	all := url.Values{"ca": {ca}, "cert": {cert}, "key": {key}}
	d := open(t, address+"?"+all.Encode(), namespace())
	closing(t, d)
	sub := subscribe(t, d, "jobs")
	publish(t, d, "jobs", "secret")
	drain(t, sub, 1)
	for name, query := range map[string]url.Values{"unknown authority": {"cert": {cert}, "key": {key}},
		"no certificate": {"ca": {ca}}} {
		query.Set("timeout", "2s")
		if _, err := redis.New(t.Context(),
			redis.Options{URL: address + "?" + query.Encode()}); !errors.Is(err, driver.ErrNotApplied) &&
			!errors.Is(err, driver.ErrUnknown) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
