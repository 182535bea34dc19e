package letterjson

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// Retry is a retry policy that travels with a message.
type Retry struct {
	Delays     []jsontime.Duration `json:"delays,omitempty"`
	Base       jsontime.Duration   `json:"base,omitempty"`
	Factor     float64             `json:"factor,omitempty"`
	Cap        jsontime.Duration   `json:"cap,omitempty"`
	NoJitter   bool                `json:"no_jitter,omitempty"`
	MaxElapsed jsontime.Duration   `json:"max_elapsed,omitempty"`
}

func retryOf(p *driver.RetryPolicy) *Retry {
	if p == nil {
		return nil
	}
	r := &Retry{Base: jsontime.Duration(p.Base), Factor: p.Factor, Cap: jsontime.Duration(p.Cap), NoJitter: p.NoJitter,
		MaxElapsed: jsontime.Duration(p.MaxElapsed)}
	for _, d := range p.Delays {
		r.Delays = append(r.Delays, jsontime.Duration(d))
	}
	return r
}

func (r *Retry) policy() *driver.RetryPolicy {
	if r == nil {
		return nil
	}
	p := &driver.RetryPolicy{Base: time.Duration(r.Base), Factor: r.Factor, Cap: time.Duration(r.Cap),
		NoJitter: r.NoJitter, MaxElapsed: time.Duration(r.MaxElapsed)}
	for _, d := range r.Delays {
		p.Delays = append(p.Delays, time.Duration(d))
	}
	return p
}
