package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// createGroup makes a group that begins at a position.
func (t *topic) createGroup(name string, o driver.GroupOptions, now moment) (*group, error) {
	behind, err := t.position(o.Start, now)
	if err != nil {
		return nil, err
	}
	g := t.addGroup(name, o.Order, true)
	for _, e := range t.history() {
		if behind(e) && !e.expired(now) {
			g.receive(e, now)
		}
	}
	return g, nil
}

// meltForStart brings everything into memory for a new group that begins before the end.
func (t *topic) meltForStart(ctx context.Context, group string, start driver.Position, now moment) error {
	if _, ok := t.group(group); ok || start.From == driver.FromEnd || t.config.Keep <= 0 {
		return nil
	}
	return t.melt(ctx, now, nil)
}

// history returns what became ready and is still there, the newest first: so each is placed before the others at once.
func (t *topic) history() []*entry {
	es := slices.DeleteFunc(t.log.all(), func(e *entry) bool { return e.state != fanned })
	slices.SortFunc(es, func(a, b *entry) int { return cmp.Compare(b.fan, a.fan) })
	return es
}

// position returns a function that tells what lies behind p, or why that position does not exist.
func (t *topic) position(p driver.Position, now moment) (behind func(*entry) bool, err error) {
	if err := p.CheckKept(t.name, t.config.Keep); err != nil {
		return nil, err
	}
	switch p.From {
	case driver.FromEnd:
		return func(*entry) bool { return false }, nil
	case driver.FromTime:
		// What is told of a time of a message drifts by some nanoseconds, as the wall clock does.
		since := now.of(p.Time.Truncate(time.Millisecond))
		if t.trimmed > 0 && t.trimmedDue >= since {
			return nil, t.errTrimmed(p.Time.String())
		}
		return func(e *entry) bool { return e.due >= since }, nil
	case driver.FromRef:
		return t.fromRef(p.Ref)
	}
	return func(*entry) bool { return true }, nil
}

func (t *topic) fromRef(ref driver.Ref) (func(*entry) bool, error) {
	first := t.log.get(ref.Pos)
	switch {
	case first != nil && first.state == fanned:
		return func(e *entry) bool { return e.fan >= first.fan }, nil
	case first != nil:
		return nil, driver.NewError(driver.ErrConflict, fmt.Sprintf("message %v of topic %q has not become ready", ref,
			t.name), "choose an older one", nil)
	case ref.Pos == 0 || ref.Pos > t.seq:
		return nil, t.errNoMessage(driver.Target{Ref: ref})
	case t.trimmed >= ref.Pos:
		return nil, t.errTrimmed(ref.String())
	}
	return func(e *entry) bool { return e.seq > ref.Pos }, nil
}

func (t *topic) errTrimmed(position string) error {
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("history of topic %q is no longer complete since %s", t.name,
		position),
		"use FromBegin for all that is kept, or a later position", nil)
}

// Reset makes a group start again from a position.
func (e *Engine) Reset(ctx context.Context, in, name string, o driver.ResetOptions) (report driver.ResetReport,
	err error) {
	if err := o.Check(in, name); err != nil {
		return report, err
	}
	var g *group
	var behind func(*entry) bool
	err = e.changeWhole(ctx, in, wholeChange{
		check: func(t *topic, now moment) (err error) {
			if g, err = t.mustGroup(name); err != nil {
				return err
			}
			if err := g.errConsumers("reset"); err != nil && !o.Force {
				return err
			}
			behind, err = t.position(o.To, now)
			return err
		},
		end: func(t *topic, now moment) {
			for _, en := range t.history() {
				g.resetOne(en, behind(en), o.DryRun, &report, now)
			}
		},
	})
	return report, err
}

// resetOne delivers a message again that lies behind the position, or skips one before it.
func (g *group) resetOne(e *entry, behind, dryRun bool, report *driver.ResetReport, now moment) {
	it := e.item(g)
	switch {
	case behind && !e.expired(now) && (it == nil || it.state == done):
		report.Replayed++
		if !dryRun {
			g.replay(e, it, now)
		}
	case !behind && it != nil && it.state == ready:
		report.Skipped++
		if !dryRun {
			g.stats.Cancelled++
			g.finish(it, g.t.final(), now)
		}
	}
}

func (g *group) replay(e *entry, it *item, now moment) {
	if it == nil {
		it = e.newItem(g)
	}
	it.startOver()
	it.Place, it.cause = e.fan, driver.CauseReplay
	if it.more != nil {
		it.more.ending = ending{}
	}
	g.stats.Received++
	g.makeReady(it, now)
}
