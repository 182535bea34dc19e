package redisconn

import (
	"context"
	"errors"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// Closing is a hook of a client that is closed while commands are under way: they say so, and not that the server went
// away.
type Closing struct{ begun atomic.Bool }

// NewClosing returns the hook of a client that was not used yet. Of a cluster, which is asked node by node for some
// things, every node has it, too.
func NewClosing(client goredis.UniversalClient) *Closing {
	c := new(Closing)
	client.AddHook(c)
	if cluster, ok := client.(*goredis.ClusterClient); ok {
		cluster.OnNewNode(func(node *goredis.Client) { node.AddHook(c) })
	}
	return c
}

// Close closes the client that this is the hook of.
func (c *Closing) Close(client goredis.UniversalClient) error {
	c.begun.Store(true)
	return Classify(client.Close())
}

// DialHook changes nothing.
func (c *Closing) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessHook is for single commands.
func (c *Closing) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error { return c.explain(next(ctx, cmd)) }
}

// ProcessPipelineHook is for pipelines.
func (c *Closing) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := c.explain(next(ctx, cmds))
		for _, cmd := range cmds {
			cmd.SetErr(c.explain(cmd.Err()))
		}
		return err
	}
}

// explain adds that the client was closed to what became of a command. Whether it was carried out stays as known as it
// was.
func (c *Closing) explain(err error) error {
	if err == nil || !c.begun.Load() || errors.Is(err, goredis.Nil) || IsReply(err) {
		return err
	}
	if err = Classify(err); errors.Is(err, driver.ErrClosed) {
		return err
	}
	return driver.NewError(driver.ErrClosed, "the driver was closed meanwhile", "open it again", err)
}
