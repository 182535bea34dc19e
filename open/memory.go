package open

import (
	"context"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// openMemory opens memory://?max_messages=N&max_body=N.
func openMemory(ctx context.Context, rest string, p *parameters, o ferry.Options) (*ferry.Broker, error) {
	if rest != "" {
		return nil, driver.NewError(driver.ErrInvalid, "memory:// takes no host, path, user or password", schemes, nil)
	}
	mo := memory.Options{MaxMessages: p.number("max_messages"), MaxBody: int(p.number("max_body")), Broker: o}
	if err := p.done(); err != nil {
		return nil, err
	}
	return memory.Open(ctx, mo)
}
