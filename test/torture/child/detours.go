package child

import (
	"context"
	"net"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/open"
)

// detours are proxies by the address of the server behind each. Sentinels, cluster nodes and Kafka brokers tell their
// clients addresses of others, so that a proxy in the URL alone would soon be left aside: the connection itself takes
// the detour.
type detours map[string]string

// open opens a broker by its URL, through the detours.
func (d detours) open(ctx context.Context, rawURL string) (*ferry.Broker, error) {
	if len(d) == 0 {
		return open.URL(ctx, rawURL)
	}
	if hosts, ok := strings.CutPrefix(rawURL, "kafka://"); ok {
		return kafka.Open(ctx, kafka.Options{Brokers: strings.Split(hosts, ","), Dial: d.dial})
	}
	plain, streams := strings.CutPrefix(rawURL, "redisstream")
	if streams {
		rawURL = "redis" + plain
	}
	client := d.client(rawURL)
	var b *ferry.Broker
	var err error
	if streams {
		b, err = redisstream.Open(ctx, redisstream.Options{Client: client})
	} else {
		b, err = redis.Open(ctx, redis.Options{Client: client})
	}
	if err != nil {
		_ = client.Close()
	}
	return b, err
}

// client connects as the driver itself would.
func (d detours) client(rawURL string) goredis.UniversalClient {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	o := &goredis.UniversalOptions{Addrs: strings.Split(hosts, ","), Dialer: d.dial, ContextTimeoutEnabled: true,
		MaxRetries: -1}
	if query == "protocol=2" {
		o.Protocol = 2
	}
	switch scheme {
	case "redis+sentinel":
		o.MasterName = path
		return goredis.NewFailoverClient(o.Failover())
	case "redis+cluster":
		return goredis.NewClusterClient(o.Cluster())
	}
	return goredis.NewClient(o.Simple())
}

func (d detours) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if via, ok := d[address]; ok {
		address = via
	}
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
}
