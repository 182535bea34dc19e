package open

import (
	"context"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/redisstream"
)

// openRedisStream opens redisstream:// and its relatives: the URLs of Redis with "redisstream" in place of "redis".
// Parameters that describe the connection are left to the driver.
func openRedisStream(ctx context.Context, rest string, p *parameters, o ferry.Options) (*ferry.Broker, error) {
	so := redisstream.Options{
		Prefix: p.text("prefix"), Partitions: int(p.number("partitions")), Window: int(p.number("window")),
		MaxBody: int(p.number("max_body")),
		Strict:  p.flag("strict"), Logger: o.Logger, Broker: o,
	}
	_ = p.flag("insecure") // see Diagnose
	connection := p.connection()
	if err := p.done(); err != nil {
		return nil, err
	}
	so.URL = strings.Replace(p.scheme, "redisstream", "redis", 1) + "://" + rest
	if len(connection) > 0 {
		so.URL += "?" + connection.Encode()
	}
	return redisstream.Open(ctx, so)
}
