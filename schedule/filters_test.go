package schedule_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/schedule"
)

// seal is a filter that binds a body to the id of its message, and whose keys are away at first.
type seal struct{ away int }

func (*seal) Names() []string { return []string{"seal"} }

func (s *seal) Apply(_ context.Context, body []byte, a codec.About) ([]byte, string, error) {
	if s.away--; s.away >= 0 {
		return nil, "", codec.ErrUnavailable
	}
	return []byte(a.ID + ":" + string(body)), "seal", nil
}

func (*seal) Undo(context.Context, []byte, string, codec.About, int) ([]byte, error) {
	return nil, errors.New("nobody asks")
}

// Fires are filtered like any publish, each for its own id. While that cannot be done they wait; none is lost.
func TestFiresAreFiltered(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		var err error
		r.b, err = ferry.New(r.d, ferry.Options{Filters: []codec.Filter{&seal{away: 2}}})
		r.ok(err)
		r.s = r.scheduler()
		r.put(schedule.Schedule{Name: "hourly", Spec: "@hourly",
			Message: &ferry.Message{Topic: topic, Body: []byte("body")}})
		r.run()
		r.pass(2*time.Hour + time.Minute)
		fires := r.fired()
		if len(fires) != 2 {
			r.Fatalf("%d fires, want 2: %v", len(fires), fires)
		}
		for _, f := range fires {
			if !strings.HasPrefix(f.body, f.id+":") {
				r.Errorf("message %s is stored as %q", f.id, f.body)
			}
		}
	})
}
