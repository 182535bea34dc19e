package open

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/spool/spooldisk"
)

// spoolOptions are taken by the URLs of servers.
var spoolOptions = []option{
	{"spool", "a directory", "what is published while the broker is away is kept there, in a directory of each process: " +
		"[spool.md](spool.md). Defaults to none"},
	{"spool_bytes", bytes, "the most that waits there; beyond it publishing answers `ErrFull`. Defaults to 1 GiB"},
	{"spool_messages", number, "the most messages that wait there. Defaults to 1 million"},
	{"spool_emergency", "a directory", "a file for each day in it gets what the spool cannot take. Defaults to none"},
}

// spool takes the parameters of a spool; false when there is none.
func (p *parameters) spool() (spooldisk.Options, bool) {
	if kindOf(p.scheme).spool == nil || !p.values.Has("spool") {
		return spooldisk.Options{}, false // what is left of its parameters is an error
	}
	o := spooldisk.Options{
		Root: p.text("spool"),
		Spool: spool.Options{MaxBytes: p.number("spool_bytes"), MaxMessages: p.number("spool_messages"),
			Emergency: p.text("spool_emergency")},
	}
	if o.Root == "" {
		p.bad = append(p.bad, `parameter "spool" must name a directory`)
	}
	return o, true
}

// withSpool puts a spool in front of a broker that is open and unused.
func withSpool(ctx context.Context, b *ferry.Broker, so spooldisk.Options, o ferry.Options) (*ferry.Broker, error) {
	so.Spool.Logger = o.Logger
	s, err := spooldisk.Open(ctx, b.Driver(), so)
	if err != nil {
		return nil, errors.Join(err, b.Close(context.WithoutCancel(ctx)))
	}
	spooled, err := ferry.New(s, o)
	if err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return spooled, nil
}
