package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ferrymq/ferry/driver"
)

// Reach finds the brokers, and checks what the options ask of them. It does not wait for long: a wrong address must
// show at the start.
func (d *Cluster) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	if err := d.Client.Ping(ctx); err != nil {
		return unreachable(err)
	}
	meta, err := d.Admin.BrokerMetadata(ctx)
	if err != nil {
		return unreachable(err)
	}
	n := len(meta.Brokers)
	if d.Settings.Replicas <= 0 {
		d.Settings.Replicas = 1
		if n >= 3 {
			d.Settings.Replicas = 3
		}
	}
	if d.Settings.Replicas > n {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%d replicas need as many brokers, and there are %d",
			d.Settings.Replicas, n), "lower Options.Replicas, or add brokers", nil)
	}
	return d.checkSession(ctx, meta.Controller)
}

// unreachable says why no broker answers, as far as it can be told.
func unreachable(err error) error {
	hint := "check the addresses: kafka://host:port of a listener that this program can reach"
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism),
		errors.Is(err, kerr.IllegalSaslState):
		hint = "check user, password and mechanism (sasl=plain, scram-sha-256 or scram-sha-512) against the listener"
	case errors.Is(err, io.EOF):
		hint = "the broker closed the connection: a listener with TLS needs kafkas://, one with SASL a user"
	}
	return driver.NewError(driver.ErrNotApplied, "no broker can be used", hint, err)
}

// checkSession compares the session with what the brokers allow; a lease is never shorter. A broker that does not tell
// is believed.
func (d *Cluster) checkSession(ctx context.Context, broker int32) error {
	shortest, longest := d.BrokerMillis(ctx, broker, "group.min.session.timeout.ms"),
		d.BrokerMillis(ctx, broker, "group.max.session.timeout.ms")
	switch {
	case !d.sessionGiven:
		d.Settings.Session = max(d.Settings.Session, shortest)
	case d.Settings.Session < shortest || longest > 0 && d.Settings.Session > longest:
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("a session of %v is refused by the brokers, which allow %v "+
			"to %v", d.Settings.Session, shortest, longest),
			"change it, or group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers", nil)
	}
	return nil
}

// BrokerMillis reads a setting of a broker; 0 when it is hidden.
func (d *Cluster) BrokerMillis(ctx context.Context, broker int32, name string) time.Duration {
	configs, err := d.Admin.DescribeBrokerConfigs(ctx, broker)
	if err != nil {
		return 0
	}
	for _, r := range configs {
		for _, c := range r.Configs {
			if c.Key == name && c.Value != nil {
				ms, _ := strconv.Atoi(*c.Value)
				return time.Duration(ms) * time.Millisecond
			}
		}
	}
	return 0
}
