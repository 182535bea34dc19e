package disk

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Usage tells how much the files take, and how much is left of the file system they are on.
func (d *Driver) Usage(context.Context) (driver.Usage, error) {
	if err := d.store.readers.enter(); err != nil {
		return driver.Usage{}, err
	}
	defer d.store.readers.leave()
	u := driver.Usage{Disk: int64(d.store.db.Metrics().DiskSpaceUsage())}
	if free, err := d.dir.fs.GetDiskUsage(d.dir.path); err == nil { // some file systems do not tell
		u.DiskFree = int64(free.AvailBytes)
	}
	return u, nil
}
