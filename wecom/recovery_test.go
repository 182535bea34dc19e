package wecom_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
	"github.com/ferrymq/ferry/worker"
)

// Dead letters of one reason come back behind all guards, that of dedup included, since what died was not handled;
// those of another reason stay.
func TestRecoveryByReason(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	layers, err := r.p.Protection(guard.NewMemory(guard.MemoryOptions{}), nil)
	r.ok(err)
	late := r.vendor.Say("kf1", "ann", "slow")
	r.vendor.Say("kf1", "ben", "wrong")
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	var well atomic.Bool
	handled := make(chan string, 10)
	w := worker.New(r.broker, worker.Options{})
	r.p.Handle(w, layers, func(_ context.Context, m *ferry.Msg[wecom.Message]) error {
		switch {
		case m.Value.Text.Content == "wrong":
			return worker.Fatal(errors.New("no"))
		case !well.Load():
			return worker.Dead(driver.ReasonTimeout, errors.New("no answer"))
		}
		handled <- m.ID
		return nil
	})
	runtest.Start(r, w.Run)
	r.waitForDead(2)

	well.Store(true)
	letters, err := deadletter.New(r.broker)
	r.ok(err)
	where, err := deadletter.ParseFilter(`reason == "timeout" and headers["kf_open_kfid"] == "kf1"`)
	r.ok(err)
	report, err := letters.Replay(t.Context(), deadletter.ReplayOptions{
		Selection: deadletter.Selection{Topic: wecom.Topic, Where: where}})
	r.ok(err)
	if id := <-handled; id != late || report.Done != 1 {
		t.Errorf("%s was handled, %+v", id, report)
	}
	r.waitForDead(1)
}

// waitForDead waits until so many dead letters are left.
func (r *rig) waitForDead(n int64) {
	r.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		stats, err := r.broker.Driver().Stats(r.Context(), wecom.Topic)
		r.ok(err)
		if len(stats.Groups) == 1 && stats.Groups[0].Dead == n {
			return
		}
		if time.Since(begun) > time.Minute {
			r.Fatalf("no %d dead letters after a minute: %+v", n, stats)
		}
	}
}
