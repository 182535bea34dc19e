package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
)

// slowSync is how long a sync may take before a publish by one caller is slow because of it.
const slowSync = 20 * time.Millisecond

// Diagnose looks at what a publish really survives, at the directory, and at the disk below it.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.store.readers.enter(); err != nil {
		return nil, err
	}
	defer d.store.readers.leave()
	var findings []driver.Finding
	for _, look := range []struct {
		subject string
		find    func() (severity driver.Severity, text, hint string)
	}{
		{"store", d.findFailure}, {"durability", d.findDurability}, {"free space", d.findSpace}, {"format", d.findFormat},
		{"sync time", d.findSyncTime},
	} {
		severity, text, hint := look.find()
		findings = append(findings, driver.Finding{Severity: severity, Subject: look.subject, Text: text, Hint: hint})
	}
	return findings, nil
}

func (d *Driver) findFailure() (severity driver.Severity, text, hint string) {
	if err := d.store.Failure(); err != nil {
		return driver.SeverityError, "stopped after a failed write: " + err.Error(),
			"see to the disk, then close the broker and open it again"
	}
	return driver.SeverityOK, "in use by this process, all writes succeeded", ""
}

func (d *Driver) findDurability() (severity driver.Severity, text, hint string) {
	if d.o.Sync.always() {
		return driver.SeverityOK, "a publish survives a power loss", ""
	}
	return driver.SeverityWarning,
		fmt.Sprintf("a publish survives kill -9; a power loss takes the last %v", d.o.Sync.every),
		"use Sync: Always where that is too much"
}

func (d *Driver) findSpace() (severity driver.Severity, text, hint string) {
	usage, err := d.dir.fs.GetDiskUsage(d.dir.path)
	free, reserve := usage.AvailBytes, uint64(d.o.Reserve)
	switch {
	case err != nil:
		return driver.SeverityUnknown, err.Error(), "look yourself: df " + d.dir.path
	case free < reserve:
		return driver.SeverityError,
			fmt.Sprintf("%d MiB, less than the reserve of %d MiB: publishing is refused", free>>20, reserve>>20),
			"free space, or let consumers catch up"
	case free < 4*reserve:
		return driver.SeverityWarning, fmt.Sprintf("%d MiB; publishing is refused below %d MiB", free>>20, reserve>>20),
			"free space in time"
	}
	return driver.SeverityOK, fmt.Sprintf("%d MiB", free>>20), ""
}

func (d *Driver) findFormat() (severity driver.Severity, text, hint string) {
	m := d.store.db.Metrics()
	return driver.SeverityOK, fmt.Sprintf("version %d, pebble format %v, %d MiB on disk in %s", formatVersion,
		d.store.db.FormatMajorVersion(), m.DiskSpaceUsage()>>20, d.dir.path), ""
}

// findSyncTime measures what every publish waits for.
func (d *Driver) findSyncTime() (severity driver.Severity, text, hint string) {
	took, err := d.probe()
	switch {
	case err != nil:
		return driver.SeverityError, err.Error(), "check that the directory can be written"
	case took > slowSync:
		return driver.SeverityWarning, took.String(),
			"publish from many callers at once, which share a sync, or use Sync: Interval, or a faster disk"
	}
	return driver.SeverityOK, took.String(), ""
}

// probe returns the middle of three syncs of a file of its own.
func (d *Driver) probe() (time.Duration, error) {
	fs := d.store.fs
	name := fs.PathJoin(d.dir.path, "probe.tmp")
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return 0, err
	}
	var took [3]time.Duration
	for i := range took {
		start := time.Now()
		_, werr := f.Write(make([]byte, 4096))
		err = errors.Join(err, werr, f.SyncData())
		took[i] = time.Since(start)
	}
	slices.Sort(took[:])
	return took[1], errors.Join(err, f.Close(), fs.Remove(name))
}
