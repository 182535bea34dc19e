package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// nemesis carries out a plan, and undoes in the end what still lasts.
type nemesis struct {
	cast    *cast
	servers servers
	log     *history.Writer
	open    []ongoing
}

// ongoing is a lasting fault of one life of a process, or of a server.
type ongoing struct {
	until  time.Duration
	name   string // empty for a server: its faults concern everybody
	number int    // of the server
	action string
	excuse bool
	end    func(context.Context) error
	victim process // nil for a server
}

// run does each step at its time until the load is over.
func (n *nemesis) run(ctx context.Context, steps []schedule.Step, load time.Duration) error {
	start := time.Now()
	for {
		now := time.Since(start)
		if err := n.endThose(ctx, now); err != nil {
			return err
		}
		for len(steps) > 0 && steps[0].At <= now && now < load {
			if err := n.do(ctx, steps[0], now); err != nil {
				return fmt.Errorf("%v: %w", steps[0], err)
			}
			steps = steps[1:]
		}
		if now >= load || ctx.Err() != nil {
			return n.endThose(ctx, 1<<63-1)
		}
		next := load
		if len(steps) > 0 {
			next = min(next, steps[0].At)
		}
		for _, o := range n.open {
			next = min(next, o.until)
		}
		sleep(ctx, next-time.Since(start))
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (n *nemesis) do(ctx context.Context, s schedule.Step, now time.Duration) error {
	switch s.Action {
	case history.Reset:
		return n.reset(ctx, s.With)
	case trim:
		return n.trim(ctx, s.With)
	}
	switch s.Role {
	case server:
		for _, number := range s.Victims {
			if err := n.harmServer(s, number, now); err != nil {
				return err
			}
		}
		return nil
	case "":
		return n.harmServer(s, 0, now)
	}
	for _, number := range s.Victims {
		p, name := n.cast.slots[s.Role][number-1].now()
		if p == nil {
			continue // between two lives
		}
		if err := n.harm(p, name, s, now); err != nil {
			return err
		}
	}
	return nil
}

// harmServer begins a fault that concerns everybody. One of the same name that still lasts goes on instead.
func (n *nemesis) harmServer(s schedule.Step, number int, now time.Duration) error {
	if n.servers == nil {
		return errors.New("the broker has nothing that can be harmed like that")
	}
	if slices.ContainsFunc(n.open,
		func(o ongoing) bool { return o.victim == nil && o.action == s.Action && o.number == number }) {
		return nil
	}
	excuse := s.Action != "flush-scripts" // which nobody may notice
	if excuse {
		n.markServer(s)
	}
	extra, err := n.servers.begin(s, number)
	if err != nil {
		return err
	}
	if extra != "" {
		n.log.Mark(history.KindFault, "", extra)
		n.log.Mark(history.KindHeal, "", extra)
	}
	n.open = append(n.open, ongoing{until: now + s.For, number: number, action: s.Action, excuse: excuse,
		end: func(ctx context.Context) error { return n.servers.end(ctx, s, number) }})
	return nil
}

// markServer writes down that a server's fault begins, and what the checker must know of it.
func (n *nemesis) markServer(s schedule.Step) {
	if s.Action == history.StepClock {
		step, _ := time.ParseDuration(s.With) // a bad one is refused by the servers
		n.log.MarkStep(step)
		return
	}
	n.log.Mark(history.KindFault, "", s.Action)
}

func (n *nemesis) harm(p process, name string, s schedule.Step, now time.Duration) error {
	switch s.Action {
	case "kill":
		n.open = slices.DeleteFunc(n.open, func(o ongoing) bool { return o.victim == p && !o.excuse })
		if err := p.kill(); err != nil {
			return err
		}
		n.log.Mark(history.KindCrash, name, s.Action)
		return nil
	case "term":
		n.log.Mark(history.KindNote, name, s.Action)
		return p.terminate()
	case termKill:
		return n.termKill(p, name, s.With)
	case termTwice:
		return n.termTwice(p, name, s.With)
	}
	kind := history.KindNote
	if excuses[s.Action] {
		kind = history.KindFault
	}
	n.log.Mark(kind, name, s.Action)
	n.open = append(n.open, ongoing{until: now + s.For, name: name, action: s.Action, excuse: excuses[s.Action], victim: p,
		end: func(context.Context) error { return p.end(s.Action) }})
	return p.begin(s.Action, s.With)
}

// termTwice asks a process to end, and asks again while it does so.
func (n *nemesis) termTwice(p process, name, after string) error {
	wait, err := time.ParseDuration(after)
	if err != nil {
		return fmt.Errorf("%s with %q: it takes a duration", termTwice, after)
	}
	n.log.Mark(history.KindNote, name, termTwice)
	if err := p.terminate(); err != nil {
		return err
	}
	<-time.After(wait)
	return p.terminate()
}

// termKill kills a process while it gives back what it has.
func (n *nemesis) termKill(p process, name, after string) error {
	wait, err := time.ParseDuration(after)
	if err != nil {
		return fmt.Errorf("%s with %q: it takes a duration", termKill, after)
	}
	n.log.Mark(history.KindNote, name, termKill)
	if err := p.terminate(); err != nil {
		return err
	}
	patience := time.NewTimer(wait)
	defer patience.Stop()
	select {
	case <-p.done():
		return nil
	case <-patience.C:
	}
	n.open = slices.DeleteFunc(n.open, func(o ongoing) bool { return o.victim == p && !o.excuse })
	if err := p.kill(); err != nil {
		return err
	}
	n.log.Mark(history.KindCrash, name, termKill)
	return nil
}

// endThose ends the faults whose time is over.
func (n *nemesis) endThose(ctx context.Context, now time.Duration) error {
	var err error
	n.open = slices.DeleteFunc(n.open, func(o ongoing) bool {
		if o.until > now || err != nil {
			return false
		}
		if err = o.end(ctx); err == nil && o.excuse {
			n.log.Mark(history.KindHeal, o.name, o.action)
		}
		return true
	})
	return err
}
