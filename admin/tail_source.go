package admin

import (
	"context"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/driver"
)

// canTail reports whether the broker lets topics be watched without consuming from them.
func (a *API) canTail() bool {
	_, err := a.broker.Log()
	return err == nil || driver.FollowerOf(a.driver) != nil
}

// newTailer begins at the end of a topic.
func (a *API) newTailer(ctx context.Context, topic string) (tailer, error) {
	if log, err := a.broker.Log(); err == nil {
		t := &logTailer{log: log, topic: topic}
		return t, t.toEnd(ctx)
	}
	f := driver.FollowerOf(a.driver)
	if f == nil {
		return nil, without("this broker cannot be followed", "consume the topic in a group of its own: ferry sub "+topic+
			" --group NAME")
	}
	last, err := f.Follow(ctx, driver.FollowQuery{Topic: topic})
	return &followTailer{follower: f, topic: topic, last: last}, err
}

// followTailer looks at a broker that numbers messages. What every group has settled before a look is gone, and counted
// as skipped.
type followTailer struct {
	follower driver.Follower
	topic    string
	last     driver.FollowPage
}

func (t *followTailer) next(ctx context.Context) (look, error) {
	page, err := t.follower.Follow(ctx, driver.FollowQuery{Topic: t.topic, After: t.last.Last, Limit: tailMost})
	if err != nil {
		return look{}, err
	}
	skipped := int64(page.Published) - int64(t.last.Published) - int64(len(page.Entries))
	t.last = page
	return look{page.Entries, api.Skipped{Count: max(0, skipped)}}, nil // a topic that was made again counts anew
}

// logTailer looks at a broker that keeps messages in partitions.
type logTailer struct {
	log   driver.Log
	topic string
	last  []driver.Partition
}

// toEnd goes on behind everything that is there.
func (t *logTailer) toEnd(ctx context.Context) (err error) {
	t.last, err = t.log.Partitions(ctx, t.topic)
	return err
}

// next reads on in each partition. When there is more than a look holds, the rest is skipped: how many is not known,
// since places in a log are no numbers.
func (t *logTailer) next(ctx context.Context) (l look, err error) {
	behind := false
	for i := range t.last {
		more, err := t.read(ctx, &t.last[i], &l)
		if err != nil {
			return look{}, err
		}
		behind = behind || more
	}
	if behind {
		l.skipped.More = true
		return l, t.toEnd(ctx)
	}
	return l, nil
}

// read adds what came in a partition, and reports whether there is more.
func (t *logTailer) read(ctx context.Context, p *driver.Partition, l *look) (more bool, err error) {
	from := driver.Position{From: driver.FromBegin}
	if !p.Last.IsZero() {
		from = driver.Position{From: driver.FromRef, Ref: p.Last}
	}
	page, err := t.log.Range(ctx, driver.RangeQuery{Topic: t.topic, Partition: p.Partition, From: from, Limit: tailMost})
	if err != nil {
		return false, err
	}
	for _, e := range page.Entries {
		if e.Ref == p.Last {
			continue
		}
		l.entries, p.Last = append(l.entries, e), e.Ref
	}
	return !page.Next.IsZero(), nil
}
