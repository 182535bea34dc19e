package state

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

// backend is where a broker is.
type backend struct {
	url    string        // of what processes open; on disk a directory, in which each group has its own
	shared driver.Driver // in this process alone
	server *redistest.Server
	ends   []func() error
}

// openBackend starts the servers of a broker.
func openBackend(o Options) (b *backend, err error) {
	b = &backend{url: o.URL}
	if o.Broker == "memory" {
		b.shared, err = memory.New(context.Background(), memory.Options{})
		return b, err
	}
	if o.URL != "" {
		return b, nil
	}
	dir, err := os.MkdirTemp("", "ferry-torture-state-")
	if err != nil {
		return nil, err
	}
	b.ends = append(b.ends, func() error { return os.RemoveAll(dir) })
	if err := b.serve(o, dir); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// serve starts servers in a directory.
func (b *backend) serve(o Options, dir string) error {
	switch o.Broker {
	case "disk":
		b.url = "disk://" + dir
		return nil
	case "kafka":
		c, err := kafkatest.Start(dir, 1)
		if err != nil {
			return err
		}
		b.url = "kafka://" + c.Addrs()[0] + "/?transactions=true&partitions=2&internal_partitions=2"
		b.ends = append(b.ends, func() error { c.Close(); return nil })
		return nil
	}
	options := redistest.Options{AOF: "always"} // it is killed too, and nothing may be lost by that
	if o.Fault == "schedules" {
		options.AOF = "everysec"
	}
	s, err := redistest.StartSingle(dir, options)
	if err != nil {
		return err
	}
	b.server, b.url = s, strings.Replace(s.URL(), "redis", o.Broker, 1)
	if o.Broker == "redisstream" {
		b.url += "?partitions=2"
	}
	b.ends = append(b.ends, func() error { s.Close(); return nil })
	return nil
}

func (b *backend) close() (err error) {
	if b.shared != nil {
		err = b.shared.Close(context.Background())
	}
	for i := len(b.ends) - 1; i >= 0; i-- {
		err = errors.Join(err, b.ends[i]())
	}
	return err
}

// open returns the broker for the harness itself. On disk nobody else has it open then.
func (b *backend) open(ctx context.Context) (*ferry.Broker, error) {
	if b.shared != nil {
		return ferry.New(kept{b.shared}, ferry.Options{Logger: quiet()})
	}
	return open.URL(ctx, b.url, ferry.Options{Logger: quiet()})
}

// kept is a driver that somebody else closes.
type kept struct{ driver.Driver }

// Close leaves it open.
func (kept) Close(context.Context) error { return nil }

// addressOf is the server in a URL, none for a broker without one.
func addressOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme == "disk" {
		return ""
	}
	return u.Host
}
