package kafka

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

// reach finds the brokers, and checks what the options ask of them. It does not wait for long: a wrong address must
// show at the start.
func (d *Driver) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	if err := d.client.Ping(ctx); err != nil {
		return unreachable(err)
	}
	meta, err := d.admin.BrokerMetadata(ctx)
	if err != nil {
		return unreachable(err)
	}
	n := len(meta.Brokers)
	if d.o.Replicas <= 0 {
		d.o.Replicas = 1
		if n >= 3 {
			d.o.Replicas = 3
		}
	}
	if d.o.Replicas > n {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%d replicas need as many brokers, and there are %d", d.o.Replicas, n), "lower Options.Replicas, or add brokers", nil)
	}
	return d.checkSession(ctx, meta.Controller)
}

// unreachable says why no broker answers, as far as it can be told.
func unreachable(err error) error {
	hint := "check the addresses: kafka://host:port of a listener that this program can reach"
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		hint = "check user, password and mechanism (sasl=plain, scram-sha-256 or scram-sha-512) against the listener"
	case errors.Is(err, io.EOF):
		hint = "the broker closed the connection: a listener with TLS needs kafkas://, one with SASL a user"
	}
	return driver.NewError(driver.ErrNotApplied, "no broker can be used", hint, err)
}

// checkSession compares the session with what the brokers allow; a lease is never shorter. A broker that does not tell is believed.
func (d *Driver) checkSession(ctx context.Context, broker int32) error {
	shortest, longest := d.brokerMillis(ctx, broker, "group.min.session.timeout.ms"), d.brokerMillis(ctx, broker, "group.max.session.timeout.ms")
	if d.sessionGiven {
		if d.o.Session < shortest || longest > 0 && d.o.Session > longest {
			return driver.NewError(driver.ErrInvalid, fmt.Sprintf("a session of %v is refused by the brokers, which allow %v to %v", d.o.Session, shortest, longest),
				"change it, or group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers", nil)
		}
		return nil
	}
	d.o.Session = max(d.o.Session, shortest)
	return nil
}

// brokerMillis reads a setting of a broker; 0 when it is hidden.
func (d *Driver) brokerMillis(ctx context.Context, broker int32, name string) time.Duration {
	configs, err := d.admin.DescribeBrokerConfigs(ctx, broker)
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
