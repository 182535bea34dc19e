package periodic

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"time"
)

// Outcome is what became of the ticks of a span of time.
type Outcome struct {
	Ticks int     `json:"ticks"` // of all schedules
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
	// Early handlers started before their tick.
	Early int `json:"early"`
	// Missed ticks have no handler that started, Doubled ones several messages. Repeated are messages whose handler
	// started again.
	Missed   int `json:"missed"`
	Doubled  int `json:"doubled"`
	Repeated int `json:"repeated"`
}

// tickOf is one tick of one schedule.
type tickOf struct {
	schedule string
	micros   int64
}

type message struct{ schedule, id string }

// events are what journals say.
type events struct {
	fired   map[message]int64   // its tick
	handled map[message][]int64 // when, in the order of the journal
	says    map[message]int64   // the tick that its handler knows
}

func readEvents(r io.Reader) (events, error) {
	e := events{map[message]int64{}, map[message][]int64{}, map[message]int64{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var what string
		var m message
		var tick, at int64
		if _, err := fmt.Sscan(lines.Text(), &what, &m.schedule, &m.id, &tick, &at); err != nil {
			continue // the last line of a process that was killed may be cut
		}
		switch what {
		case "fired":
			e.fired[m] = tick
		case "handled":
			e.handled[m] = append(e.handled[m], at)
			e.says[m] = tick
		}
	}
	return e, lines.Err()
}

// tick is that of a message: as its handler or its maker says, or else the full second before it was handled.
func (e events) tick(m message) int64 {
	switch {
	case e.says[m] != 0:
		return e.says[m]
	case e.fired[m] != 0:
		return e.fired[m]
	}
	return e.handled[m][0] - e.handled[m][0]%time.Second.Microseconds()
}

// Count judges the ticks from a time on, before another.
func Count(r io.Reader, from, to time.Time) (Outcome, error) {
	e, err := readEvents(r)
	if err != nil {
		return Outcome{}, err
	}
	var o Outcome
	made, late := map[tickOf]int{}, []float64{}
	for m, at := range e.handled {
		tick := e.tick(m)
		if tick < from.UnixMicro() || tick >= to.UnixMicro() {
			continue
		}
		made[tickOf{m.schedule, tick}]++
		late = append(late, float64(at[0]-tick)/1000)
		o.Repeated += len(at) - 1
	}
	for tick := from; tick.Before(to); tick = tick.Add(time.Second) {
		for i := range Schedules {
			o.Ticks++
			switch n := made[tickOf{name(i), tick.UnixMicro()}]; {
			case n == 0:
				o.Missed++
			case n > 1:
				o.Doubled++
			}
		}
	}
	slices.Sort(late)
	for _, l := range late {
		if l < 0 {
			o.Early++
		}
	}
	if n := len(late); n > 0 {
		o.P50, o.P99, o.Max = late[n/2], late[n*99/100], late[n-1]
	}
	return o, nil
}
