package open

import (
	"context"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/redis"
)

// openRedis opens redis:// and its relatives. Parameters that describe the connection are left to the driver.
func openRedis(ctx context.Context, rest string, p *parameters, o ferry.Options) (*ferry.Broker, error) {
	ro := redis.Options{
		Prefix: p.text("prefix"), Shards: int(p.number("shards")), MaxBody: int(p.number("max_body")),
		Strict: p.flag("strict"),
		Logger: o.Logger, Broker: o,
	}
	_ = p.flag("insecure") // see Diagnose
	connection := p.connection()
	if err := p.done(); err != nil {
		return nil, err
	}
	ro.URL = p.scheme + "://" + rest
	if len(connection) > 0 {
		ro.URL += "?" + connection.Encode()
	}
	return redis.Open(ctx, ro)
}
