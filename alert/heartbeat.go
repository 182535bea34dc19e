package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
)

// Heartbeat is a notice that says that alerts are evaluated.
type Heartbeat struct {
	// Targets get it. None: it is not sent.
	Targets []notify.Target
	// Every defaults to a minute.
	Every time.Duration
}

// Beat says that alerts are evaluated.
type Beat struct {
	At    time.Time     `json:"at"`
	Every time.Duration `json:"every"`
	Rules int           `json:"rules"`
	// Unjudged are rules that cannot fire at present, since nobody tells the figures in Missing.
	Unjudged []string `json:"unjudged,omitempty"`
	Missing  []string `json:"missing,omitempty"`
}

// heartbeat says that alerts are evaluated: to the broker after each look, and to the targets from time to time.
func (r *round) heartbeat(ctx context.Context, beat Beat) error {
	data, err := json.Marshal(beat)
	if err != nil {
		return err
	}
	w := driver.Write{Name: "beat", Data: data, Fence: r.store.fence, Quiet: true}
	if err := r.store.kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0].Err; err != nil {
		return err
	}
	h, now := r.settings.Load().heartbeat, beat.At
	if len(h.Targets) == 0 || now.Sub(r.beat) < h.Every {
		return nil
	}
	r.beat = now
	_, err = r.o.Hub.Send(ctx, heartbeat(now, h))
	return err
}

// heartbeat is the notice of a time. All who send one in the same interval give it the same id.
func heartbeat(now time.Time, h Heartbeat) *notify.Message {
	return notify.NewMessage("Alerts are evaluated", now.UTC().Format(time.RFC3339)).
		WithID(fmt.Sprintf("alert-heartbeat-%d", now.UnixNano()/int64(h.Every))).AddTarget(h.Targets...)
}

// Alive tells when alerts were last evaluated. It is an ErrNotFound if they never were, or not for three looks.
func Alive(ctx context.Context, b *ferry.Broker) (Beat, error) {
	values, err := b.Driver().KV().Get(ctx, bucket, "beat")
	if err != nil {
		return Beat{}, err
	}
	var beat Beat
	if v := values[0]; v.Revision != 0 {
		if err := json.Unmarshal(v.Data, &beat); err != nil {
			return beat, err
		}
	}
	if beat.At.IsZero() || time.Since(beat.At) > 3*beat.Every {
		return beat, driver.NewError(ferry.ErrNotFound, "nobody evaluates alerts", "run a Watch in some process", nil)
	}
	return beat, nil
}
