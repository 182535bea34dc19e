package kafka

import (
	"crypto/tls"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
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
}

// Defaults of Options, and times of the protocol.
const (
	DefaultPartitions         = 12
	DefaultInternalPartitions = 4
	DefaultMaxBody            = 900 << 10

	session       = 6 * time.Second // of a group member: how soon a dead one is replaced
	heartbeat     = time.Second
	rebalance     = 20 * time.Second
	drainFor      = 3 * time.Second // how long a revoked partition waits for its deliveries
	commitEvery   = 200 * time.Millisecond
	fetchWait     = 100 * time.Millisecond
	windowItems   = 20_000 // fetched and not settled, for each member
	idWindow      = 60 * time.Second
	maxRemembered = 1_000_000
)

func (o Options) resolved() Options {
	if o.Partitions <= 0 {
		o.Partitions = DefaultPartitions
	}
	if o.InternalPartitions <= 0 {
		o.InternalPartitions = DefaultInternalPartitions
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.ClientID == "" {
		o.ClientID = "ferry"
	}
	return o
}
