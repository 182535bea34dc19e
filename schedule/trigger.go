package schedule

import (
	"context"
	"crypto/rand"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Trigger publishes the message of a schedule now, once, beside its ticks; also of one that is paused or has ended.
// Nobody has to run schedules for it.
func (s *Scheduler) Trigger(ctx context.Context, name string) (ferry.Receipt, error) {
	st, err := s.Get(ctx, name)
	if err != nil {
		return ferry.Receipt{}, err
	}
	m := st.Message.Clone()
	if m.Headers == nil {
		m.Headers = map[string]string{}
	}
	m.Headers[HeaderName] = name
	m.ID, m.OwnID = driver.EmitID("trigger/"+rand.Text(), 0), true
	var r ferry.Receipt
	err = repeated(ctx, func() (err error) {
		r, err = s.broker.Publish(ctx, m)
		return err
	})
	return r, err
}
