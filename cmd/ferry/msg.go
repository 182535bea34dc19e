package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation/kinds"
)

const msgExample = `  ferry msg ls orders                              what is ready, in every group
  ferry msg ls orders --state delayed --limit 0    everything that is scheduled
  ferry msg ls orders --where 'key == "alice"'      search, as in ferry dlq ls
  ferry msg range orders --partition 3             what is in a log, settled or not (Redis Streams, Kafka)
  ferry msg show orders 0-42                       one message as every group sees it
  ferry msg show orders 0-42 --raw > body          its body, byte by byte
  ferry msg move orders 0-42                       run it now
  ferry msg move orders 0-42 --delay 1h            or in an hour
  ferry msg rm orders 0-42 --group billing         remove it, for one group only
  ferry msg cancel orders 0-42                     the same, and stop its handler if it runs
  ferry msg wait reports default order-42          what its handler returned, as soon as it is there`

func newMsg(p process) *cobra.Command {
	return newNoun("msg", "List, show, move, remove, cancel and wait for single messages", msgExample, newMsgList(p),
		newMsgRange(p), newMsgShow(p), newMsgRemove(p), newMsgMove(p), newMsgCancel(p), newMsgWait(p))
}

var states = []string{
	string(driver.StateReady), string(driver.StateInflight), string(driver.StateWaiting), string(driver.StateDelayed),
	string(driver.StateHeld),
	string(driver.StateDead), string(driver.StateInvalid), string(driver.StateDone),
}

const msgListLong = `Lists the messages of a topic in one state, oldest first:

  ready     due; may wait for its key         delayed   published for later
  inflight  leased to a consumer              held      half of a transaction
  waiting   waits for a retry, or parked      invalid   cannot be decoded (see ferry parse-errors)
  dead      a dead letter (see ferry dlq)     done      settled, and kept by the topic

Of what is done it shows when it was settled, how long its last handler ran, and which instance did it, as far as the
broker keeps that (memory, disk, Redis Streams).

Where there is more than --limit, standard error says with which --cursor to go on.

--where searches, in the language of 'ferry dlq ls --where': key == "alice" and json.total > 100. Of a message that
lives, attempts, reason and error are those of its failed attempts so far. It looks at no more than --max-scan
messages at a time.`

func newMsgList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls TOPIC", Short: "List messages in one state, page by page", Long: msgListLong,
		Example: "  ferry msg ls orders\n  ferry msg ls orders --state waiting --group billing\n  ferry msg ls orders " +
			"--limit 0 --output ndjson > orders.ndjson"}
	r := newRemote(p, c)
	var sc scope
	var state, where string
	var most int
	c.Flags().StringVar(&state, "state", string(driver.StateReady), strings.Join(states, ", "))
	c.Flags().StringVar(&where, "where", "", "only those that meet this condition, see above")
	c.Flags().IntVar(&most, "max-scan", searchScan, "with --where: stop after looking at this many, and say how to go on")
	onlyOnCommandLine(c.Flags(), "where")
	sc.flags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		sc.topic, sc.state = args[0], driver.State(state)
		if err := oneOf("state", state, states...); err != nil {
			return err
		}
		if err := sc.check(); err != nil {
			return err
		}
		if most < 1 {
			return usage(fmt.Sprintf("--max-scan %d is less than 1", most), "leave it out for the default")
		}
		empty := fmt.Sprintf("No messages of topic %s are %s.", sc.topic, state)
		if where == "" {
			return r.with(c.Context(), func(s session) error { return s.listEntries(c.Context(), sc, nil, empty) })
		}
		filter, err := deadletter.ParseFilter(where)
		if err != nil {
			return err
		}
		sc.maxScan = most
		return r.with(c.Context(), func(s session) error { return s.listEntries(c.Context(), sc, filter, empty) })
	}
	return c
}

// searchScan is how many messages a search looks at before it asks whether to go on.
const searchScan = 100_000

// listEntries prints the messages of a scope that meet a condition; nil is none.
func (s session) listEntries(ctx context.Context, sc scope, where *deadletter.Filter, empty string) error {
	l := newListing(s.remote, columnsOf(sc.state))
	faulty := 0
	err := sc.browse(ctx, s, func(q driver.Query, e driver.Entry) (bool, error) {
		yes, err := where.Match(ctx, deadletter.Letter{Entry: e, From: q.Topic})
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil:
			faulty++
		}
		if !yes {
			return false, nil
		}
		return true, l.add(viewEntry(q.Topic, e))
	})
	if faulty > 0 {
		s.notef("%d could not be asked, and were left out", faulty)
	}
	if err != nil {
		_ = l.end("") // what was found before
		return err
	}
	return l.end(empty)
}

var entryColumns = []column[entryView]{
	{title: "ref", cell: func(v entryView) any { return v.Ref }},
	{title: "id", width: 36, cell: func(v entryView) any { return v.ID }},
	{title: "group", width: 20, cell: func(v entryView) any { return v.Group }},
	{title: "key", width: 20, cell: func(v entryView) any { return v.Key }},
	{title: "priority", cell: func(v entryView) any { return v.Priority }},
	{title: "attempt", number: true, cell: func(v entryView) any { return plain(v.Attempt) }},
	{title: "due", cell: func(v entryView) any { return clock(v.DueAt) }},
	{title: "body", width: 60, cell: func(v entryView) any { return v.preview() }},
}

// doneColumns are those of messages that are settled and kept.
var doneColumns = []column[entryView]{
	{title: "ref", cell: func(v entryView) any { return v.Ref }},
	{title: "id", width: 36, cell: func(v entryView) any { return v.ID }},
	{title: "group", width: 20, cell: func(v entryView) any { return v.Group }},
	{title: "key", width: 20, cell: func(v entryView) any { return v.Key }},
	{title: "settled", cell: func(v entryView) any { return clock(v.SettledAt) }},
	{title: "took", number: true, cell: func(v entryView) any { return v.took() }},
	{title: "by", width: 30, cell: func(v entryView) any { return v.Instance }},
	{title: "body", width: 60, cell: func(v entryView) any { return v.preview() }},
}

func columnsOf(state driver.State) []column[entryView] {
	if state == driver.StateDone {
		return doneColumns
	}
	return entryColumns
}

func newMsgShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show TOPIC MESSAGE", Short: "Show one message as every group sees it",
		Long: "Shows one message as every group sees it, with its history.\n\n" + targetHelp,
		Example: "  ferry msg show orders 0-42\n  ferry msg show orders 0198c0de-0000-7000-8000-000000000001 --output " +
			"json\n  ferry msg show orders 0-42 --raw > body"}
	r := newRemote(p, c)
	var raw bool
	rawFlag(c.Flags(), &raw)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			found, err := locate(c.Context(), s.driver, args[0], args[1])
			if err != nil {
				return err
			}
			return r.showAll(args[0], found.views, raw)
		})
	}
	return c
}

func newMsgRemove(p process) *cobra.Command {
	c := &cobra.Command{Use: "rm TOPIC [MESSAGE...]", Short: "Remove messages, for every group or for one",
		Example: "  ferry msg rm orders 0-42\n  ferry msg rm orders 0-42 0-43 --group billing --yes\n  ferry msg rm mails " +
			"--all --state delayed,waiting --where 'key == \"bob\"' --dry-run",
		Long: "Removes messages: for every group, or with --group for that one. What is in flight stays. It " +
			"asks\nfirst, or takes --yes.\n\n" + waitingHelp + "\n\n" + targetHelp}
	r := newRemote(p, c)
	var group string
	var w waiting
	groupFlag(c.Flags(), &group, "only for this group (default: for every group)")
	w.flags(c.Flags(), driver.StateReady, driver.StateWaiting, driver.StateDelayed, driver.StateHeld)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(checkGroup(group), w.check(args[1:])); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			if w.all {
				return w.run(c.Context(), s, args[0], kinds.Purge{Messages: w.messages(args[0], group)}.Request(), "remove",
					"removed")
			}
			found, err := locateAll(c.Context(), s.driver, args[0], args[1:])
			if err != nil {
				return err
			}
			for i := range found {
				found[i].target.Group = group
			}
			return s.remove(c.Context(), args[0], found, w.yes)
		})
	}
	return c
}

// remove deletes messages after a question.
func (s session) remove(ctx context.Context, topic string, found []located, yes bool) error {
	targets, names := make([]driver.Target, len(found)), make([]string, len(found))
	for i, l := range found {
		targets[i], names[i] = l.target, l.name
	}
	if err := s.confirm(ctx, yes, fmt.Sprintf("remove from topic %s: %s", topic, strings.Join(names, ", ")),
		""); err != nil {
		return err
	}
	return s.outcomes("removed", targets, names, s.driver.Delete(ctx, targets))
}

func newMsgMove(p process) *cobra.Command {
	c := &cobra.Command{Use: "move TOPIC [MESSAGE...]", Short: "Make messages due: run now, reschedule, replay, change",
		Example: "  ferry msg move orders 0-42\n  ferry msg move orders 0-42 --delay 1h\n  ferry msg move orders 0-42 " +
			"--body '{\"id\":42}'\n  ferry msg move mails --all --where 'key == \"bob\"' --delay 24h --background --yes",
		Long: "Makes messages due that are delayed, held, waiting or dead: at once, or after --delay. The content of\na " +
			"single one can be changed on the way.\n\n" + waitingHelp + "\n\n" + targetHelp}
	r := newRemote(p, c)
	var m moveFlags
	var group string
	var w waiting
	groupFlag(c.Flags(), &group, "the group, where several wait for it")
	m.add(c.Flags())
	w.flags(c.Flags(), driver.StateWaiting, driver.StateDelayed, driver.StateHeld)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(w.check(args[1:]), checkGroup(group)); err != nil {
			return err
		}
		if err := m.check(c.Flags(), len(args)-1); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			if w.all {
				a := kinds.Reschedule{Messages: w.messages(args[0], group)}
				if m.delay > 0 {
					a.At = time.Now().Add(m.delay)
				}
				return w.run(c.Context(), s, args[0], a.Request(), "move", "moved")
			}
			found, views, err := selected(c.Context(), s, args[0], group, args[1:], driver.StateDelayed, driver.StateHeld,
				driver.StateWaiting, driver.StateDead)
			if err != nil {
				return err
			}
			return m.move(c.Context(), s, c.Flags(), "moved", found, views)
		})
	}
	return c
}
