package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/spool/spooldisk"
)

// absent is a broker that is away; and one with an opinion on the topic mails, when it is not.
type absent struct {
	driver.Driver
	present bool
}

func (a *absent) Publish(ctx context.Context, ms []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	rs := make([]driver.Receipt, len(ms))
	var failed error
	for i, m := range ms {
		switch {
		case !a.present:
			rs[i].Err = driver.NewError(driver.ErrNotApplied, "away", "", nil)
		case m.Topic == "mails":
			rs[i].Err = driver.NewError(driver.ErrTooLarge, "mails are too large", "", nil)
		default:
			got, err := a.Driver.Publish(ctx, []*driver.Message{m}, o)
			rs[i], rs[i].Err = got[0], err
		}
		if rs[i].Err != nil {
			failed = rs[i].Err
		}
	}
	return rs, failed
}

// spoolIn leaves a spool behind, as a program does whose broker is away: orders 1 to 3 of a key, and a mail.
func spoolIn(t *testing.T, root string) *spool.Driver {
	t.Helper()
	d, err := spooldisk.Open(t.Context(), &absent{Driver: newMemory(t, memory.Options{})}, spooldisk.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 3; i++ {
		m := &driver.Message{ID: fmt.Sprintf("o%d", i), Topic: "orders", Key: "ann", Body: fmt.Appendf(nil, "order %d", i)}
		if _, err := d.Publish(t.Context(), []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Publish(t.Context(), []*driver.Message{{ID: "m1", Topic: "mails", Body: []byte("mail")}},
		driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSpool(t *testing.T) {
	t.Parallel()
	d, root := newDesk(t), filepath.Join(t.TempDir(), "spool")
	d.fails(exitNotFound, "is no directory", "spool", "ls", root)
	running := spoolIn(t, root)
	d.has(d.ok("spool", "ls", root), "0001", fmt.Sprintf("in use by process %d", os.Getpid()))
	d.fails(exitFailure, "every directory of the spool is in use", "spool", "replay", root)
	if err := running.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	d.has(d.ok("spool", "ls", root), "0001", "orders", "mails")
	d.has(d.ok("spool", "ls", root, "--output", "ndjson"), `"topic":"orders","messages":3`, `"topic":"mails","messages":1`)
	d.has(d.ok("spool", "show", root, "o2"), "o2  ready", "ann", "order 2")
	d.has(d.ok("spool", "show", root, "o2", "--output", "json"), `"body": "order 2"`, `"key": "ann"`)
	d.fails(exitNotFound, "no message o9 is in the spool", "spool", "show", root, "o9")

	saved := d.ok("spool", "export", root)
	d.has(saved, `"id":"o1"`, `"id":"o3"`, `"id":"m1"`)
	d.hasNot(d.ok("spool", "export", root, "--topic", "mails"), "o1")

	// The broker takes the orders, in order, and refuses the mail for good.
	d.driver = &absent{Driver: d.memory, present: true}
	d.has(d.ok("spool", "replay", root), "published 3 messages", "1 were refused")
	d.has(d.ok("msg", "ls", "orders", "--state", "ready"), "o1", "o2", "o3")
	d.has(d.ok("spool", "ls", root, "--output", "ndjson"), `"topic":"mails","messages":0,"bytes":0,"dead":1`)
	d.has(d.ok("spool", "show", root, "m1"), "mails are too large")
	d.driver = d.memory
	d.has(d.ok("spool", "replay", root, "--dead"), "published 1 messages")
	d.has(d.ok("spool", "ls", root), "the spool is empty")

	// A file has the same ids: the broker knows them.
	file := filepath.Join(t.TempDir(), "saved.jsonl")
	if err := os.WriteFile(file, []byte(saved), 0o600); err != nil {
		t.Fatal(err)
	}
	d.has(d.ok("spool", "replay", file), "published 0 messages; the broker knew 4")
	if err := os.WriteFile(file, []byte(saved+"rubbish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.fails(exitUsage, "line 5 is no message of a spool", "spool", "replay", file)
}

// TestSpoolReplaysFilteredBodies: what filters made of a body is published from a file as it is.
func TestSpoolReplaysFilteredBodies(t *testing.T) {
	t.Parallel()
	d, file := newDesk(t), filepath.Join(t.TempDir(), "spool-20260131.jsonl")
	write := func(line string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"id":"e1","topic":"orders","key":"ann","body_base64":"AQID","headers":{"ferry-encoding":"zstd,aes-gcm;k=1"}}`)
	d.has(d.ok("spool", "replay", file), "published 1 messages")
	es, err := d.memory.Get(t.Context(), driver.Target{Topic: "orders", ID: "e1"})
	if err != nil || len(es) != 1 || string(es[0].Body) != "\x01\x02\x03" ||
		es[0].Headers[ferry.EncodingHeader] != "zstd,aes-gcm;k=1" {
		t.Errorf("%+v, error %v", es, err)
	}
	write(`{"id":"e2","topic":"no topic","body_base64":"AQID"}`)
	d.fails(exitUsage, "line 1 is no message of a spool", "spool", "replay", file)
}

// TestNoSpool: a directory of something else is not called an empty spool.
func TestNoSpool(t *testing.T) {
	t.Parallel()
	d, dir := newDesk(t), t.TempDir()
	d.has(d.ok("spool", "ls", dir), "the spool is empty")
	if err := os.WriteFile(filepath.Join(dir, "passwd"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"ls", "export", "replay"} {
		d.fails(exitNotFound, "is no spool", "spool", verb, dir)
	}
}

func TestSpoolPurge(t *testing.T) {
	t.Parallel()
	d, root := newDesk(t), filepath.Join(t.TempDir(), "spool")
	if err := spoolIn(t, root).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.fails(exitUsage, "nobody can be asked", "spool", "purge", root)
	d.has(d.ok("spool", "purge", root, "--topic", "mails", "--yes"), "removed 1 messages")
	d.has(d.ok("spool", "purge", root, "--dead", "--yes"), "removed 0 messages")
	d.has(d.ok("spool", "purge", root, "--yes"), "removed 3 messages")
	d.has(d.ok("spool", "ls", root), "the spool is empty")
}
