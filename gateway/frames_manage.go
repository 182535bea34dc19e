package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

func (g *Gateway) topics(ctx context.Context, names *frame.TopicNames) (frame.Value, error) {
	all, err := g.driver.Topics(ctx, *names...)
	if err != nil {
		return nil, err
	}
	who := auth.From(ctx)
	if !who.MayAny(auth.View) {
		return nil, may(ctx, auth.View, "")
	}
	all = slices.DeleteFunc(all, func(t driver.TopicInfo) bool { return !who.May(auth.View, t.Topic) })
	return (*frame.Topics)(&all), nil
}

func (g *Gateway) stats(ctx context.Context, q *frame.Place) (frame.Value, error) {
	if err := may(ctx, auth.View, q.Topic); err != nil {
		return nil, err
	}
	s, err := g.driver.Stats(ctx, q.Topic)
	return (*frame.Stats)(&s), err
}

func (g *Gateway) browse(ctx context.Context, q *frame.Query) (frame.Value, error) {
	if err := g.mayBrowse(ctx, q.Topic); err != nil {
		return nil, err
	}
	p, err := g.driver.Browse(ctx, driver.Query(*q))
	return (*frame.Page)(&p), err
}

func (g *Gateway) get(ctx context.Context, q *frame.Target) (frame.Value, error) {
	if err := g.mayBrowse(ctx, q.Topic); err != nil {
		return nil, err
	}
	es, err := g.driver.Get(ctx, driver.Target(*q))
	return (*frame.Entries)(&es), err
}

func (g *Gateway) usage(ctx context.Context, _ *frame.Nothing) (frame.Value, error) {
	if err := may(ctx, auth.View, ""); err != nil {
		return nil, err
	}
	u, err := g.driver.Usage(ctx)
	return (*frame.Usage)(&u), err
}

func (g *Gateway) diagnose(ctx context.Context, _ *frame.Nothing) (frame.Value, error) {
	if err := may(ctx, auth.View, ""); err != nil {
		return nil, err
	}
	fs, err := g.driver.Diagnose(ctx)
	return (*frame.Findings)(&fs), err
}

func (g *Gateway) audit(ctx context.Context, q *frame.Place) (frame.Value, error) {
	if q.Flag {
		return g.repair(ctx, q.Topic)
	}
	if err := may(ctx, auth.View, q.Topic); err != nil {
		return nil, err
	}
	r, err := g.driver.Audit(ctx, q.Topic, false)
	return (*frame.AuditReport)(&r), err
}

// repair is an audit that mends what it finds.
func (g *Gateway) repair(ctx context.Context, topic string) (frame.Value, error) {
	var r driver.AuditReport
	_, err := g.managed(ctx, auth.Action{What: "topic.audit", Topic: topic},
		func() (err error) { r, err = g.driver.Audit(ctx, topic, true); return err })
	return (*frame.AuditReport)(&r), err
}

func (g *Gateway) ensureTopic(ctx context.Context, q *frame.Config) (frame.Value, error) {
	return g.operate(ctx, q.Topic, func() error { return g.driver.EnsureTopic(ctx, q.Topic, q.Config) })
}

func (g *Gateway) alterTopic(ctx context.Context, q *frame.Config) (frame.Value, error) {
	return g.managed(ctx, auth.Action{What: "topic.put", Topic: q.Topic},
		func() error { return g.driver.AlterTopic(ctx, q.Topic, q.Config) })
}

func (g *Gateway) deleteTopic(ctx context.Context, q *frame.Place) (frame.Value, error) {
	return g.managed(ctx, auth.Action{What: "topic.delete", Topic: q.Topic},
		func() error { return g.driver.DeleteTopic(ctx, q.Topic) })
}

func (g *Gateway) ensureGroup(ctx context.Context, q *frame.Group) (frame.Value, error) {
	return g.operate(ctx, q.Topic, func() error { return g.driver.EnsureGroup(ctx, q.Topic, q.Group, q.Options) })
}

func (g *Gateway) deleteGroup(ctx context.Context, q *frame.Place) (frame.Value, error) {
	return g.managed(ctx, auth.Action{What: "group.delete", Topic: q.Topic, Group: q.Group},
		func() error { return g.driver.DeleteGroup(ctx, q.Topic, q.Group) })
}

func (g *Gateway) pause(ctx context.Context, q *frame.Place) (frame.Value, error) {
	what := "resume"
	if q.Flag {
		what = "pause"
	}
	if what = "topic." + what; q.Group != "" {
		what = "group" + strings.TrimPrefix(what, "topic")
	}
	return g.managed(ctx, auth.Action{What: what, Topic: q.Topic, Group: q.Group},
		func() error { return g.driver.Pause(ctx, q.Topic, q.Group, q.Flag) })
}

// managed is operate for what is recorded: what a program does by itself, as making a topic or a group that it needs,
// is not.
func (g *Gateway) managed(ctx context.Context, action auth.Action, change func() error) (frame.Value, error) {
	v, err := g.operate(ctx, action.Topic, change)
	g.record(ctx, action, err)
	return v, err
}

// operate runs what changes a topic.
func (g *Gateway) operate(ctx context.Context, topic string, change func() error) (frame.Value, error) {
	if err := may(ctx, auth.Operate, topic); err != nil {
		return nil, err
	}
	return done(change())
}

func (g *Gateway) purge(ctx context.Context, q *frame.Place) (frame.Value, error) {
	var n int
	_, err := g.operate(ctx, q.Topic, func() (err error) { n, err = g.driver.Purge(ctx, q.Topic, q.Group); return err })
	g.record(ctx, auth.Action{What: "topic.purge", Topic: q.Topic, Group: q.Group, Count: int64(n)}, err)
	return (*frame.Number)(&n), err
}

func (g *Gateway) delete(ctx context.Context, q *frame.Targets) (frame.Value, error) {
	for _, t := range *q {
		if err := may(ctx, auth.Operate, t.Topic); err != nil {
			g.record(ctx, auth.Action{What: "message.delete", Topic: t.Topic, Group: t.Group}, err)
			return nil, err
		}
	}
	errs := g.driver.Delete(ctx, *q)
	g.recordEach(ctx, "message.delete", *q, errs)
	return (*frame.Errors)(&errs), nil
}

func (g *Gateway) move(ctx context.Context, q *frame.Moves) (frame.Value, error) {
	for _, m := range *q {
		if err := may(ctx, auth.Operate, m.Topic); err != nil {
			g.record(ctx, auth.Action{What: "message.move", Topic: m.Topic, Group: m.Group}, err)
			return nil, err
		}
	}
	errs := g.driver.Move(ctx, *q)
	targets := make([]driver.Target, len(*q))
	for i, m := range *q {
		targets[i] = m.Target
	}
	g.recordEach(ctx, "message.move", targets, errs)
	return (*frame.Errors)(&errs), nil
}

func (g *Gateway) reset(ctx context.Context, q *frame.Reset) (frame.Value, error) {
	var r driver.ResetReport
	_, err := g.operate(ctx, q.Topic,
		func() (err error) { r, err = g.driver.Reset(ctx, q.Topic, q.Group, q.Options); return err })
	g.record(ctx, auth.Action{What: "group.reset", Topic: q.Topic, Group: q.Group}, err)
	return (*frame.ResetReport)(&r), err
}
