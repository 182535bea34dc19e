package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/open"
)

const backupLong = `Copies a disk:// broker to another directory, and then reads every record of the copy with its
checksum. The copy is a store: to restore it, stop the broker, move the damaged directory away,
and copy the backup to its place (cp -a).

The directory must not be in use. The process that uses it can make the same copy while it goes
on working, if its program asks for one: docs/disk.md.

Files that never change are linked, not copied, where both directories are on one file system:
that is fast and takes no room, but a copy for a disk that breaks belongs on another disk.`

func newBackup(p process) *cobra.Command {
	c := &cobra.Command{Use: "backup", Short: "Copy a disk:// broker", Long: backupLong,
		Example: "  ferry backup --broker disk:///var/lib/jobs --to /mnt/backup/jobs-monday"}
	r := newRemote(p, c)
	var to string
	c.Flags().StringVar(&to, "to", "", "directory for the copy; it must not exist, or be empty")
	onlyOnCommandLine(c.Flags(), "to")
	c.RunE = func(c *cobra.Command, _ []string) error { return r.backup(c.Context(), to) }
	return c
}

func (r *remote) backup(ctx context.Context, to string) error {
	if err := oneOf("output", r.format, formatTable, formatJSON, formatNDJSON); err != nil {
		return err
	}
	if to == "" {
		return usage("no directory for the copy is given", "name one that does not exist with --to")
	}
	url, err := r.reachable()
	if err != nil {
		return err
	}
	o, err := open.Disk(url)
	if err != nil {
		return err
	}
	if err := disk.Backup(ctx, o, to); err != nil {
		return err
	}
	findings, err := disk.Check(ctx, disk.Options{Dir: to})
	if err != nil {
		return err
	}
	copied := driver.Finding{Severity: driver.SeverityOK, Subject: "copy", Text: to}
	return r.conclude(append([]driver.Finding{copied}, findings...))
}
