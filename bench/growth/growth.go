// Package growth measures whether what a message costs stays the same while a broker grows: with more keys, topics,
// groups, delayed messages, larger bodies. Costs are processor time, of this process and of the servers behind it,
// which other work on the machine disturbs least.
package growth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/plan"
	"github.com/ferrymq/ferry/bench/system/ours"
	"github.com/ferrymq/ferry/driver"
)

// Shape is one way to grow.
type Shape struct {
	Name, Title string
	// Sizes are what is compared: the first with each of the others. They grow: where one cannot be reached, those behind
	// it cannot either.
	Sizes []int
	// Unit is what a cost is of: a message, a delivery, a KB.
	Unit string
	// Idle is what the bytes are of that stay when nothing waits any more. Empty: they are not looked at.
	Idle string
	run  func(ctx context.Context, g *grown, size int) (Cost, error)
}

// Cost is what one size of a shape cost.
type Cost struct {
	// Units were paid for.
	Units   float64       `json:"units"`
	CPU     time.Duration `json:"cpu"`
	Server  time.Duration `json:"server_cpu,omitempty"`
	Elapsed time.Duration `json:"elapsed"`
	// IdleBytes are of one idle thing, in this process and in the servers or files.
	IdleBytes float64 `json:"idle_bytes,omitempty"`
}

// PerUnit is the processor time for one unit, in µs.
func (c Cost) PerUnit() float64 { return float64(c.CPU+c.Server) / 1e3 / c.Units }

// Row is one size of one shape on one broker.
type Row struct {
	Broker string `json:"broker"`
	Shape  string `json:"shape"`
	Size   int    `json:"size"`
	// Rounds are all that was measured, in the order in which it was.
	Rounds []Cost `json:"rounds"`
	// Unreached is why there are no more rounds: the size takes too long here, or more than the broker can have.
	Unreached string `json:"unreached,omitempty"`
}

// Median is the round in the middle, by what a unit cost.
func (r Row) Median() Cost {
	sorted := slices.SortedFunc(slices.Values(r.Rounds), func(a, b Cost) int {
		return cmp.Compare(a.PerUnit(), b.PerUnit())
	})
	return sorted[len(sorted)/2]
}

// Effort is how much is measured.
type Effort struct {
	Rounds int
	// Each bounds one measurement: a size that takes longer is not reached.
	Each time.Duration
	// Scale is 1; tests take less.
	Scale float64
}

// Measure asks one shape of one broker. Sizes take turns, round after round, so that what disturbs the machine disturbs
// all of them.
func Measure(ctx context.Context, broker string, s Shape, o Effort) ([]Row, error) {
	p, err := plan.Find(broker)
	if err != nil {
		return nil, err
	}
	system, ok := p.Ours.(ours.System)
	if !ok {
		return nil, fmt.Errorf("broker %s cannot be grown: its system is not opened by a driver", broker)
	}
	if p.Prepare != nil {
		stop, err := p.Prepare()
		if err != nil {
			return nil, err
		}
		defer func() { _ = stop() }()
	}
	rows := make([]Row, len(s.Sizes))
	for i, size := range s.Sizes {
		rows[i] = Row{Broker: broker, Shape: s.Name, Size: size}
	}
	for range o.Rounds {
		for i := range rows {
			if rows[i].Unreached != "" {
				break
			}
			c, unreached, err := bounded(ctx, system, s, rows[i].Size, o)
			if err != nil {
				return nil, fmt.Errorf("%s on %s at %d: %w", s.Name, broker, rows[i].Size, err)
			}
			if unreached != "" {
				for j := range rows[i:] {
					rows[i+j].Unreached = unreached
				}
				break
			}
			rows[i].Rounds = append(rows[i].Rounds, c)
		}
	}
	return rows, nil
}

// bounded measures one size, or says why it cannot be reached.
func bounded(ctx context.Context, system ours.System, s Shape, size int, o Effort) (c Cost, unreached string,
	err error) {
	limited, cancel := context.WithTimeout(ctx, o.Each)
	defer cancel()
	c, err = once(limited, system, s, size, o.Scale)
	switch {
	case err == nil || ctx.Err() != nil:
		return c, "", err
	case limited.Err() != nil:
		return c, fmt.Sprintf("%s takes longer than %v here", Count(size), o.Each), nil
	case errors.Is(err, driver.ErrFull):
		return c, fmt.Sprintf("%s: %v", Count(size), err), nil
	}
	return c, "", err
}

// grown is a broker that grows.
type grown struct {
	*ferry.Broker
	backend ours.Backend
	scale   float64
}

// once measures one size on a broker of its own.
func once(ctx context.Context, system ours.System, s Shape, size int, scale float64) (c Cost, err error) {
	backend, err := system.Start(ctx)
	if err != nil {
		return c, err
	}
	if backend.Stop != nil {
		defer func() { err = errors.Join(err, backend.Stop()) }()
	}
	d, err := backend.Open(ctx)
	if err != nil {
		return c, err
	}
	b, err := ferry.New(d, ferry.Options{})
	if err != nil {
		return c, errors.Join(err, d.Close(ctx))
	}
	defer func() { err = errors.Join(err, b.Close(context.WithoutCancel(ctx))) }()
	return s.run(ctx, &grown{Broker: b, backend: backend, scale: scale}, size)
}

// scaled is n, less in tests.
func (g *grown) scaled(n int) int { return max(1, int(float64(n)*g.scale)) }

// serverCPU is what the servers behind the broker have used so far.
func (g *grown) serverCPU() time.Duration {
	if g.backend.Usage == nil {
		return 0
	}
	u, err := g.backend.Usage()
	if err != nil {
		return 0
	}
	return u.CPU
}

// bytes are those of this process and of the servers or files.
func (g *grown) bytes() (float64, error) {
	n := float64(meter.LiveHeap())
	if g.backend.Usage == nil {
		return n, nil
	}
	u, err := g.backend.Usage()
	return n + float64(u.Bytes), err
}

// cost is what work cost for so many units.
func (g *grown) cost(units float64, work func() error) (Cost, error) {
	span := meter.Start(g.serverCPU)
	if err := work(); err != nil {
		return Cost{}, err
	}
	r := span.Stop()
	return Cost{Units: units, CPU: r.CPU, Server: r.ServerCPU, Elapsed: r.Elapsed}, nil
}

// Count is a short name of a round number: 1k, 1M.
func Count(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
