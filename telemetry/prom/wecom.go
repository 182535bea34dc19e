package prom

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/wecom"
)

// ofWeCom tells what a pipeline counted, and asks the broker how old cursors are.
func (fs *families) ofWeCom(ctx context.Context, s *sheet, p *wecom.Pipeline) {
	st := p.Stats()
	s.add(fs.wecomCallbacks, float64(st.Callbacks), "stored")
	s.add(fs.wecomCallbacks, float64(st.Refused), "refused")
	s.add(fs.wecomCallbacks, float64(st.Failed), "failed")
	s.add(fs.wecomPulls, float64(st.Pulls), "done")
	s.add(fs.wecomPulls, float64(st.PullsFailed), "failed")
	s.add(fs.wecomPulls, float64(st.Limited), "limited")
	s.add(fs.wecomMessages, float64(st.Messages), "published")
	s.add(fs.wecomMessages, float64(st.Duplicates), "duplicate")
	s.add(fs.wecomMessages, float64(st.Cut), "cut")
	s.add(fs.wecomRewound, float64(st.Rewound))
	s.add(fs.wecomFailing, float64(len(st.Problems)))
	s.add(fs.wecomLast, seconds(st.LastCallback))
	s.add(fs.wecomToken, seconds(st.TokenUntil))
	cursors, err := p.Cursors(ctx)
	if err != nil {
		return // ferry_up tells that the broker is away
	}
	for _, c := range cursors {
		s.add(fs.wecomAge, max(0, time.Since(c.Pulled).Seconds()))
	}
}

// seconds is a time for Prometheus; no time is zero.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
