package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

func joinNames(names []string) string { return strings.Join(names, ", ") }

func newLettersExport(p process, st store) *cobra.Command {
	c := &cobra.Command{Use: "export [TOPIC]", Short: "Write " + st.many + " to standard output, as NDJSON or CSV",
		Example: fmt.Sprintf("  ferry %s export > saved.ndjson\n  ferry %s export orders --where 'size > 1000' --format "+
			"csv > saved.csv\n"+
			"  ferry %s export orders --background --file saved.ndjson", st.noun, st.noun, st.noun),
		Long: "Writes " + st.many + ` as they are found: whole, as NDJSON that import reads, or as CSV for spreadsheets,
in which what looks like a formula is kept from being one. Nothing is removed. With --background it becomes an
operation that writes a file into the directory of whoever does it: see --export-dir of 'ferry operation run'.

` + whereHelp}
	r := newRemote(p, c)
	o := exportFlags{store: st}
	o.flags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		where, err := o.check()
		if err != nil {
			return err
		}
		sel := deadletter.Selection{Group: o.group, State: st.state, Where: where}
		if len(args) > 0 {
			sel.Topic = args[0]
		}
		return r.with(c.Context(), func(s session) error {
			if o.background {
				return s.background(c.Context(), o.request(sel.Topic), true,
					fmt.Sprintf("write %%d %s of %s to %s", st.many, of(sel.Topic), o.file))
			}
			return s.export(c.Context(), sel, deadletter.Format(o.format), st)
		})
	}
	return c
}

// exportFlags are those of an export.
type exportFlags struct {
	store               store
	filter              letterFilter
	group, format, file string
	background          bool
}

func (o *exportFlags) flags(f *pflag.FlagSet) {
	if o.store.state == driver.StateDead {
		groupFlag(f, &o.group, "only this group (default: every group)")
	}
	o.filter.flags(f, o.store)
	f.StringVar(&o.format, "format", string(deadletter.NDJSON), "ndjson or csv")
	f.BoolVar(&o.background, "background", false, "leave it to 'ferry operation run --export-dir DIR' or a worker of "+
		"your program")
	f.StringVar(&o.file, "file", "", "with --background: the name of the file, without a directory; one that is there "+
		"is replaced")
	onlyOnCommandLine(f, "background", "file")
}

// check says what is wrong with the flags, and returns the condition; nil for all.
func (o *exportFlags) check() (*deadletter.Filter, error) {
	if err := oneOf("format", o.format, string(deadletter.NDJSON), string(deadletter.CSV)); err != nil {
		return nil, err
	}
	if o.background != (o.file != "") {
		return nil, usage("--background and --file go together", "give both, or none to write to standard output")
	}
	return o.filter.compile()
}

// request is the export as an operation keeps it.
func (o *exportFlags) request(topic string) operation.Request {
	return kinds.Export{Letters: lettersOf(o.store, topic, o.group, o.filter), File: o.file,
		Format: deadletter.Format(o.format)}.Request()
}

func (s session) export(ctx context.Context, sel deadletter.Selection, f deadletter.Format, st store) error {
	queue, err := s.queue()
	if err != nil {
		return err
	}
	w := bufio.NewWriter(tame{s.out, isTerminal(s.out)})
	x, err := queue.Export(ctx, w, sel, f)
	err = errors.Join(err, w.Flush())
	if err == nil || x.Written > 0 {
		s.notef("%d %s of %s written", x.Written, st.many, of(sel.Topic))
	}
	if x.Faulty > 0 {
		s.notef("%d could not be asked, and were left out", x.Faulty)
	}
	return err
}

// tame writes to a terminal only what it does not obey.
type tame struct {
	w        io.Writer
	terminal bool
}

func (t tame) Write(b []byte) (int, error) {
	if t.terminal {
		if _, err := t.w.Write(escapeJSON(b)); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return t.w.Write(b)
}

// importView is what an import did.
type importView struct {
	Lines      int  `json:"lines"`
	Published  int  `json:"published"`
	Present    int  `json:"present"`
	Duplicates int  `json:"duplicates"`
	DryRun     bool `json:"dry_run,omitempty"`
}

func newLettersImport(p process, st store) *cobra.Command {
	c := &cobra.Command{Use: "import FILE", Short: "Publish what export, or a worker in an emergency, wrote",
		Example: fmt.Sprintf("  ferry %s import saved.ndjson --dry-run\n  ferry %s import saved.ndjson --to orders.again\n "+
			" ferry %s import - < saved.ndjson", st.noun, st.noun, st.noun),
		Long: `Publishes letters from a file of NDJSON (- is standard input) as messages to be handled. All lines are
checked first: if one is bad, its number is told and nothing is imported. What the broker still has, or
what was imported in the last 24 hours, is left out, so that an import can be repeated.`}
	r := newRemote(p, c)
	var im deadletter.ImportOptions
	c.Flags().StringVar(&im.To, "to", "", "the topic to publish to (default: the one each came from)")
	c.Flags().BoolVar(&im.EveryGroup, "every-group", false, "allow a topic with several groups: each gets the messages")
	c.Flags().BoolVar(&im.DryRun, "dry-run", false, "only check the file")
	onlyOnCommandLine(c.Flags(), "to", "every-group", "dry-run")
	im.RawBody = st.state == driver.StateInvalid
	c.RunE = func(c *cobra.Command, args []string) error {
		if im.To != "" {
			if err := driver.CheckTopic(im.To); err != nil {
				return err
			}
		}
		return r.with(c.Context(), func(s session) error { return s.importFile(c.Context(), args[0], im, st) })
	}
	return c
}

func (s session) importFile(ctx context.Context, name string, im deadletter.ImportOptions, st store) (err error) {
	queue, err := s.queue()
	if err != nil {
		return err
	}
	file, remove, err := s.readTwice(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	got, err := queue.Import(ctx, file, im)
	if err != nil {
		return err
	}
	v := importView{Lines: got.Lines, Published: got.Published, Present: got.Present, Duplicates: got.Duplicates,
		DryRun: im.DryRun}
	return s.one(v, func() error {
		if im.DryRun {
			return s.sayf("%d %s could be imported", got.Lines, st.many)
		}
		return s.sayf("imported %d %s; left out %d that the broker still has, and %d that were imported before",
			got.Published, st.many, got.Present, got.Duplicates)
	})
}

// readTwice opens a file that can be read again from its beginning: standard input is copied.
func (s session) readTwice(ctx context.Context, name string) (*os.File, func() error, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, usage(fmt.Sprintf("the file cannot be read: %v", err), "check the path and its permissions")
		}
		return f, f.Close, nil
	}
	f, err := os.CreateTemp("", "ferry-import-*.ndjson")
	if err != nil {
		return nil, nil, failure(fmt.Sprintf("standard input cannot be kept: %v", err), "save it to a file, and import that")
	}
	remove := func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	if _, err = io.Copy(f, patient{ctx, s.in}); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return f, remove, nil
}
