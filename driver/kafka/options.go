package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// Options of a Driver. Only Brokers is required.
type Options struct {
	// Brokers are some host:port of the cluster. Required.
	Brokers []string
	// Namespace is put before the name of every topic and group, so that several installations share a cluster.
	Namespace string
	// Partitions of a new topic. Defaults to 12.
	Partitions int
	// InternalPartitions of a new internal topic that is shared. Defaults to 4.
	InternalPartitions int
	// Replicas of new topics: 1 for a single broker, 3 for a cluster. Defaults to 3 where there are as many brokers.
	Replicas int
	// MaxBody is the largest body in bytes. Defaults to 900 KiB, which leaves room for what a dead letter adds.
	MaxBody int
	// ClientID names this program in the broker's logs. Defaults to "ferry".
	ClientID string
	// TLS, when set, is used for every connection.
	TLS *tls.Config
	// SASL authenticates every connection. Defaults to none.
	SASL sasl.Mechanism
	// Rack is where this program runs: what it follows is fetched from a replica in the same rack where there is one.
	Rack string
	// Dial makes the connections to the brokers, by the addresses they advertise. Defaults to plain TCP, or to TLS.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Session is how soon a consumer that died is replaced: the default and the shortest lease. Defaults to 6 s, which
	// is also the shortest that brokers allow (group.min.session.timeout.ms).
	Session time.Duration
	// Transactions stores follow-ups in one transaction with the outcome of their parent (Capabilities.AtomicEmit), a
	// delayed message with its leaving the tier, and a message that is moved with the end of what it was. Defaults to
	// storing the one before the other.
	Transactions bool
	// RejectForeign sends records of producers that do not know Ferry to the parse-error store. Defaults to delivering
	// them as messages with their headers.
	RejectForeign bool
	// Broker configures what Open returns. New ignores it.
	Broker ferry.Options

	rowLocks      time.Duration // how long a lock on a row lasts; tests shorten it
	snapshotEvery int           // bytes of commands between snapshots of named values; tests shorten it
	kvIdle        time.Duration // for how long named values are followed that nobody uses; tests shorten it
}

// Defaults of Options.
const (
	DefaultPartitions         = 12
	DefaultInternalPartitions = 4
	DefaultMaxBody            = 900 << 10

	// DefaultSession is the shortest that brokers allow by default.
	DefaultSession = 6 * time.Second
)

// settings are the options with defaults.
func (o Options) settings() cluster.Settings {
	connect := []kgo.Opt{kgo.ClientID(cmp.Or(o.ClientID, "ferry")), kgo.DialTLSConfig(o.TLS), kgo.Dialer(o.Dial),
		kgo.Rack(o.Rack)}
	if o.SASL != nil {
		connect = append(connect, kgo.SASL(o.SASL))
	}
	return cluster.Settings{Brokers: o.Brokers, Namespace: o.Namespace, Connect: connect,
		Partitions:         cmp.Or(max(0, o.Partitions), DefaultPartitions),
		InternalPartitions: cmp.Or(max(0, o.InternalPartitions), DefaultInternalPartitions), Replicas: o.Replicas,
		MaxBody: cmp.Or(max(0, o.MaxBody), DefaultMaxBody), Session: cmp.Or(max(0, o.Session), DefaultSession),
		Transactions: o.Transactions, RejectForeign: o.RejectForeign}
}

// check says what is wrong with options before anything is sent.
func (o Options) check() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	switch {
	case len(o.Brokers) == 0:
		return driver.NewError(driver.ErrInvalid, "no broker is named", "set Options.Brokers to host:port of some", nil)
	case len(o.Namespace) > 64 || strings.Trim(o.Namespace, letters) != "":
		return driver.NewError(driver.ErrInvalid, "the namespace cannot begin the name of a Kafka topic",
			"use at most 64 letters, digits, '.', '_' or '-'", nil)
	case o.MaxBody > cluster.MaxMaxBody:
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("a largest body of %d bytes is too much for Kafka", o.MaxBody),
			fmt.Sprintf("use at most %d, and publish references to what is larger", cluster.MaxMaxBody), nil)
	case o.Dial != nil && o.TLS != nil:
		return driver.NewError(driver.ErrInvalid, "both Dial and TLS are set",
			"let Dial make the TLS connection, and leave TLS empty", nil)
	case o.Partitions > 10_000 || o.InternalPartitions > 100:
		return driver.NewError(driver.ErrInvalid, "there are too many partitions",
			"use at most 10,000, and 100 internal ones", nil)
	}
	return nil
}
