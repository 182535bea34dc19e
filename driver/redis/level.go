package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
	goredis "github.com/redis/go-redis/v9"
)

// replicaPatience is how long a publish waits for its replicas.
const replicaPatience = 2 * time.Second

// runAt calls a script at a durability level. For replicated(n) it waits, on the connection of the write, until n replicas have
// it; if they do not in time the outcome is unknown, since the primary has it.
func (d *Driver) runAt(ctx context.Context, level driver.Durability, s *script, keys []string, args []any) ([]any, error) {
	n := level.Replicas()
	if n == 0 {
		return d.run(ctx, s, keys, args...)
	}
	node, err := d.node(ctx, keys[0])
	if err != nil {
		return nil, classify(err)
	}
	conn := node.Conn()
	defer func() { _ = conn.Close() }()
	reply, err := runOn(ctx, conn, s, keys, args...)
	if err != nil {
		d.relocate(ctx, err)
		return nil, err
	}
	have, err := conn.Wait(ctx, n, replicaPatience).Result()
	if err != nil {
		return nil, driver.NewError(driver.ErrUnknown, "the replicas did not answer", "publish again with the same id", err)
	}
	if have < int64(n) {
		return nil, driver.NewError(driver.ErrUnknown, fmt.Sprintf("%d of %d replicas have the message", have, n),
			"look at the replicas; publish again with the same id", nil)
	}
	return reply, nil
}

// node returns the client of the server that has a key.
func (d *Driver) node(ctx context.Context, key string) (*goredis.Client, error) {
	switch c := d.client.(type) {
	case *goredis.ClusterClient:
		return c.MasterForKey(ctx, key)
	case *goredis.Client:
		return c, nil
	}
	return nil, driver.NewError(driver.ErrUnsupported, "this client cannot pin a connection", "use a Client, a FailoverClient or a ClusterClient", nil)
}
