package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation/kinds"
)

// replayFlags are those of commands that bring letters back to work.
type replayFlags struct {
	move       moveFlags
	to         string
	toGroup    string
	background bool
	patch      string
	maxRounds  int
	checkpoint string
}

func (r *replayFlags) add(f *pflag.FlagSet, st store) {
	r.move.add(f)
	f.StringVar(&r.to, "to", "", "move them to this topic instead (default: back to where each came from)")
	f.StringVar(&r.patch, "patch", "", "a JSON patch (RFC 6902) for each body, or @FILE with one")
	onlyOnCommandLine(f, "to", "patch")
	if st.state == driver.StateDead {
		f.IntVar(&r.maxRounds, "max-rounds", 0, "with --all: leave those alone that were retried this often (default: none)")
		f.StringVar(&r.checkpoint, "checkpoint", "", "with --all: a file that keeps how far it is, to go on after an "+
			"interruption")
		f.StringVar(&r.toGroup, "to-group", "", "give them to this group of the topic instead, once it has settled them "+
			"itself")
		onlyOnCommandLine(f, "max-rounds", "checkpoint", "to-group")
		backgroundFlag(f, &r.background)
	}
}

// check says what is wrong before anything is opened. Content beyond a patch is for a single one.
func (r replayFlags) check(f *pflag.FlagSet, all bool, names int) error {
	if all {
		names = 0
	}
	if err := r.move.check(f, names); err != nil {
		return err
	}
	switch {
	case r.maxRounds < 0:
		return usage(fmt.Sprintf("--max-rounds %d is negative", r.maxRounds), "leave it out for no bound")
	case !all && (r.maxRounds != 0 || r.checkpoint != "" || r.background):
		return usage("--max-rounds, --checkpoint and --background go with --all", "add --all, or leave them out")
	case r.background && (r.checkpoint != "" || r.move.editing(f)):
		return usage("what is done in the background keeps its place in the broker, and changes bodies by --patch only",
			"leave --checkpoint and other content out")
	case r.toGroup != "" && r.to != "":
		return usage("both --to and --to-group are given", "use one of them")
	case r.toGroup != "":
		return driver.CheckName("group", r.toGroup)
	case r.to != "":
		return driver.CheckTopic(r.to)
	}
	return nil
}

// replay returns the replay without its selection. The body is read here, once.
func (r replayFlags) replay(ctx context.Context, s session, f *pflag.FlagSet) (deadletter.ReplayOptions, error) {
	out := deadletter.ReplayOptions{To: r.to, ToGroup: r.toGroup, After: r.move.delay, MaxRounds: r.maxRounds}
	var edits []deadletter.Edit
	if r.move.body.given(f) {
		body, err := r.move.body.read(ctx, s.process, f, s.driver.Capabilities().MaxBody)
		if err != nil {
			return out, err
		}
		edits = append(edits, deadletter.SetBody(body, typeOf(body)))
	}
	if r.patch != "" {
		p, err := readPatch(r.patch)
		if err != nil {
			return out, err
		}
		edits = append(edits, deadletter.PatchBody(p))
	}
	if r.move.editing(f) {
		edits = append(edits, func(_ deadletter.Letter, m *driver.Message) error { return r.move.content.apply(f, m) })
	}
	if len(edits) > 0 {
		out.Edit = deadletter.Edits(edits...)
	}
	return out, nil
}

func readPatch(s string) (deadletter.Patch, error) {
	text, err := patchText(s)
	if err != nil {
		return nil, err
	}
	return deadletter.ParsePatch(text)
}

func patchText(s string) ([]byte, error) {
	name, ok := strings.CutPrefix(s, "@")
	if !ok {
		return []byte(s), nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, usage(fmt.Sprintf("--patch cannot be read: %v", err), "check the path and its permissions")
	}
	return text, nil
}

// replayAll brings back all that match.
func (r replayFlags) replayAll(ctx context.Context, s session, topic string, b bulk, d deed) error {
	if r.background && !b.dryRun {
		req, err := r.request(topic, b)
		if err != nil {
			return err
		}
		return s.background(ctx, req, b.yes, fmt.Sprintf("%s %%d %s of topic %s", d.verb, b.store.many, topic))
	}
	if r.checkpoint == "" || b.dryRun {
		return b.run(ctx, s, topic, d)
	}
	return r.resumable(ctx, s, topic, b, d)
}

// checkpointEvery is how often the file is written.
const checkpointEvery = 500 * time.Millisecond

// resumable replays in the background and keeps in a file how far it is.
func (r replayFlags) resumable(ctx context.Context, s session, topic string, b bulk, d deed) (err error) {
	replay := d.replay
	if replay.Selection, err = b.selection(topic); err != nil {
		return err
	}
	replay.Rate = b.rate
	if text, err := os.ReadFile(r.checkpoint); err == nil {
		var c deadletter.Checkpoint
		if err := json.Unmarshal(text, &c); err != nil {
			return usage("the checkpoint file is not one", "remove it to begin anew")
		}
		replay.Checkpoint = &c
		s.notef("going on after %d that were %s before", c.Done, d.done)
	} else if err := s.confirm(ctx, b.yes, fmt.Sprintf("%s all matching %s of topic %s", d.verb, b.store.many, topic),
		""); err != nil {
		return err
	}
	queue, err := s.queue()
	if err != nil {
		return err
	}
	op, err := queue.Start(ctx, replay)
	if err != nil {
		return err
	}
	report, err := r.watch(s, op)
	if err != nil {
		s.notef("interrupted: run it again with --checkpoint %s for the rest", r.checkpoint)
	} else if err = os.Remove(r.checkpoint); os.IsNotExist(err) {
		err = nil
	}
	v := bulkView{Topic: topic, Result: d.done, Matched: report.Planned, Done: report.Checkpoint.Done,
		Skipped: report.Checkpoint.Skipped, Why: report.Why}
	if failed := s.one(v, func() error {
		return s.sayf("%s %d %s of topic %s in all, skipped %d", d.done, v.Done, b.store.many, topic, v.Skipped)
	}); failed != nil {
		return failed
	}
	return err
}

// watch keeps the checkpoint while the operation runs, and returns its report.
func (r replayFlags) watch(s session, op *deadletter.Operation) (deadletter.Report, error) {
	ended := make(chan struct{})
	var report deadletter.Report
	var err error
	go func() {
		defer close(ended)
		report, err = op.Wait()
	}()
	t := newTerminalOn(s.process, s.err)
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := op.Progress()
			if now.Phase != deadletter.Planning {
				_ = writeCheckpoint(r.checkpoint, now.Checkpoint)
			}
			if t.live {
				t.draw(fmt.Sprintf("%s: %s, %d of %d done", now.Phase, progressOf(now.Scanned, now.Total, now.Planned), now.Done,
					now.Planned))
			}
		case <-ended:
			t.erase()
			if err != nil && report.Phase != deadletter.Planning {
				_ = writeCheckpoint(r.checkpoint, report.Checkpoint)
			}
			return report, err
		}
	}
}

// writeCheckpoint replaces the file in one step.
func writeCheckpoint(name string, c deadletter.Checkpoint) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// newLettersMove is retry with --to, under the name that people look for.
func newLettersMove(p process, st store) *cobra.Command {
	c := &cobra.Command{Use: "move TOPIC [MESSAGE...]", Short: "Move " + st.many +
		" to another topic, as messages to be handled",
		Example: fmt.Sprintf("  ferry %s move orders 0-42 --to orders.again\n  ferry %s move orders --all --where 'size > "+
			"1000' --to large --dry-run", st.noun, st.noun),
		Long: "Publishes " + st.many + " to another topic and removes them here. Interrupted in between, run it again: " +
			"nothing is\npublished twice within 24 hours.\n\n" + whereHelp + "\n\n" + targetHelp}
	return letterCommand(p, c, st, "move", "moved", func(f replayFlags) error {
		if f.to == "" {
			return usage("the topic to move to is missing", "give it with --to")
		}
		return nil
	})
}

// letterCommand makes c a command that brings letters back to work.
func letterCommand(p process, c *cobra.Command, st store, verb, done string,
	check func(replayFlags) error) *cobra.Command {
	r := newRemote(p, c)
	var f replayFlags
	b := bulk{store: st}
	f.add(c.Flags(), st)
	b.flags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := b.check(args[1:]); err != nil {
			return err
		}
		if err := f.check(c.Flags(), b.all, len(args)-1); err != nil {
			return err
		}
		if err := check(f); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			replay, err := f.replay(c.Context(), s, c.Flags())
			if err != nil {
				return err
			}
			if st.state == driver.StateInvalid && replay.Edit == nil {
				replay.Edit = typed
			}
			d := deed{verb: verb, done: done, replay: replay}
			if b.all {
				return f.replayAll(c.Context(), s, args[0], b, d)
			}
			return b.named(c.Context(), s, args[0], args[1:], d)
		})
	}
	return c
}

// backgroundFlag adds --background.
func backgroundFlag(f *pflag.FlagSet, background *bool) {
	f.BoolVar(background, "background", false, "with --all: leave it to 'ferry operation run' or a worker of your program")
	onlyOnCommandLine(f, "background")
}

func newLettersRemove(p process, st store) *cobra.Command {
	c := &cobra.Command{Use: "rm TOPIC [MESSAGE...]", Short: "Remove " + st.many + ", one by one or all that match",
		Example: fmt.Sprintf("  ferry %s rm orders 0-42\n  ferry %s rm orders --all --where 'size > 1000' --dry-run\n  "+
			"ferry %s rm orders --all --yes", st.noun, st.noun, st.noun),
		Long: "Removes " + st.many + " for good. With --all it takes all that match and counts them first. It asks, or " +
			"takes\n--yes.\n\n" + whereHelp + "\n\n" + targetHelp}
	r := newRemote(p, c)
	b := bulk{store: st}
	b.flags(c.Flags())
	var background bool
	backgroundFlag(c.Flags(), &background)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := b.check(args[1:]); err != nil {
			return err
		}
		if background && !b.all {
			return usage("--background goes with --all", "add --all, or leave it out")
		}
		d := deed{verb: "remove", done: "removed", remove: true}
		return r.with(c.Context(), func(s session) error {
			if background && !b.dryRun {
				return s.background(c.Context(), kinds.Remove{Letters: b.letters(args[0]), Rate: b.rate}.Request(), b.yes,
					fmt.Sprintf("remove %%d %s of topic %s", st.many, args[0]))
			}
			if b.all {
				return b.run(c.Context(), s, args[0], d)
			}
			return b.named(c.Context(), s, args[0], args[1:], d)
		})
	}
	return c
}

func newLettersShow(p process, st store, short, example string) *cobra.Command {
	c := &cobra.Command{Use: "show TOPIC MESSAGE", Short: short, Long: short + ".\n\n" + targetHelp, Example: example}
	r := newRemote(p, c)
	var group string
	var raw bool
	if st.state == driver.StateDead {
		groupFlag(c.Flags(), &group, "the group, where it died in several")
	}
	rawFlag(c.Flags(), &raw)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkGroup(group); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			_, views, err := selected(c.Context(), s, args[0], group, args[1:], st.state)
			if err != nil {
				return err
			}
			return r.showOne(args[0], views[0], raw)
		})
	}
	return c
}
