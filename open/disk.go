package open

import (
	"context"
	"net/url"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
)

// openDisk opens disk:///absolute/path or disk://./relative/path, with ?sync=always or an interval such as sync=1s.
func openDisk(ctx context.Context, rest string, p *parameters, o ferry.Options) (*ferry.Broker, error) {
	dir, err := url.PathUnescape(rest)
	if err != nil || !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "./") && !strings.HasPrefix(dir, "../") {
		return nil, driver.NewError(driver.ErrInvalid, "a disk:// URL names a directory", "write disk:///absolute/path or disk://./relative/path", nil)
	}
	do := disk.Options{
		Dir: dir, MaxMessages: p.number("max_messages"), MaxBody: int(p.number("max_body")), Reserve: p.number("reserve"),
		Logger: o.Logger, Broker: o,
	}
	if p.values.Get("sync") == "always" {
		p.values.Del("sync")
	} else if every := p.duration("sync"); every > 0 {
		do.Sync = disk.Interval(every)
	}
	if err := p.done(); err != nil {
		return nil, err
	}
	return disk.Open(ctx, do)
}
