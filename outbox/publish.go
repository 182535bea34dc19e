package outbox

import (
	"context"
	"sync"

	"github.com/ferrymq/ferry"
)

// publish publishes rows, and notes in each why it was not. A row that fails for now never lets a later one of its key
// pass.
func (r *Relay) publish(ctx context.Context, rows []*row) {
	var good []*row
	for _, row := range rows {
		if row.err = r.prepare(row); row.err == nil {
			good = append(good, row)
		}
	}
	alone, runs := r.split(good)
	r.send(ctx, alone)
	places := make(chan struct{}, abreast)
	var sent sync.WaitGroup
	for _, run := range runs {
		places <- struct{}{}
		sent.Go(func() {
			defer func() { <-places }()
			r.sendRun(ctx, run)
		})
	}
	sent.Wait()
}

// prepare makes a row a message that can be published, or says why it never can be.
func (r *Relay) prepare(row *row) error {
	if err := row.decode(); err != nil {
		return err
	}
	m := &row.msg
	m.OwnID = true
	if m.DedupID == "" && r.o.Dedup > 0 {
		m.DedupID, m.DedupWindow = m.ID, r.o.Dedup
	}
	if err := check(m); err != nil {
		return err
	}
	return m.CheckPublish(r.broker.Driver().Capabilities().MaxBody)
}

// split returns the rows that may be stored or not, each on its own, and the runs: rows of one key, of which one must
// not be stored without those before it. A broker that has no step for a run is a log, which fails what follows.
func (r *Relay) split(rows []*row) (alone []*row, runs [][]*row) {
	if !r.steps {
		return rows, nil
	}
	type place struct{ topic, key string }
	count := map[place]int{}
	for _, row := range rows {
		count[place{row.msg.Topic, row.msg.Key}]++
	}
	at := map[place]int{}
	for _, row := range rows {
		p := place{row.msg.Topic, row.msg.Key}
		if p.key == "" || count[p] == 1 {
			alone = append(alone, row)
			continue
		}
		i, known := at[p]
		if !known {
			i, at[p] = len(runs), len(runs)
			runs = append(runs, nil)
		}
		runs[i] = append(runs[i], row)
	}
	return alone, runs
}

// send publishes rows side by side.
func (r *Relay) send(ctx context.Context, rows []*row) {
	if len(rows) == 0 {
		return
	}
	receipts, err := r.broker.PublishBatch(ctx, messages(rows))
	if receipts == nil && permanent(err) { // nothing was sent because of some of them, which a hook refuses for example
		for _, row := range rows {
			r.sendOne(ctx, row)
		}
		return
	}
	r.note(rows, receipts, err)
}

// sendRun publishes rows of one key in one step; if that cannot be, one after the other up to the first that fails for
// now.
func (r *Relay) sendRun(ctx context.Context, run []*row) {
	receipts, err := r.broker.PublishBatch(ctx, messages(run), ferry.Atomic())
	switch {
	case err == nil:
		r.note(run, receipts, nil)
	case isFull(err) || permanent(err):
		r.sendInTurn(ctx, run)
	default:
		r.note(run, nil, err)
	}
}

// sendInTurn publishes rows of one key one after the other. What follows one that fails for now fails with it.
func (r *Relay) sendInTurn(ctx context.Context, run []*row) {
	for i, row := range run {
		r.sendOne(ctx, row)
		if row.err != nil && !permanent(row.err) {
			r.note(run[i+1:], nil, row.err)
			return
		}
	}
}

func (r *Relay) sendOne(ctx context.Context, one *row) {
	receipt, err := r.broker.Publish(ctx, &one.msg)
	if err != nil {
		one.err = err
		return
	}
	r.note([]*row{one}, []ferry.Receipt{receipt}, nil)
}

// note writes into rows what became of them. Without receipts it was the same for all.
func (r *Relay) note(rows []*row, receipts []ferry.Receipt, err error) {
	for i, row := range rows {
		if receipts == nil {
			row.err = err
			continue
		}
		if row.err = receipts[i].Err; row.err != nil {
			continue
		}
		r.relayed.Add(1)
		if receipts[i].Duplicate {
			r.duplicates.Add(1)
		}
	}
}

func messages(rows []*row) []*ferry.Message {
	ms := make([]*ferry.Message, len(rows))
	for i, row := range rows {
		ms[i] = &row.msg
	}
	return ms
}
