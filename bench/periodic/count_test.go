package periodic

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Ticks are counted by what journals say: a message that is handled again is none, two messages of one tick are
// doubled, and one without a handler is missed.
func TestCount(t *testing.T) {
	t.Parallel()
	from := time.Unix(1_800_000_000, 0)
	var b strings.Builder
	line := func(what, schedule, id string, tick time.Duration, at time.Duration) {
		micros := int64(0)
		if tick >= 0 {
			micros = from.Add(tick).UnixMicro()
		}
		fmt.Fprintf(&b, "%s %s %s %d %d\n", what, schedule, id, micros, from.Add(at).UnixMicro())
	}
	for i := range Schedules {
		for n := range 10 {
			tick := time.Duration(n) * time.Second
			switch {
			case i == 0 && n == 3: // missed
			case i == 1 && n == 4: // doubled
				line("handled", name(i), "a", tick, tick+2*time.Millisecond)
				line("handled", name(i), "b", tick, tick+2*time.Millisecond)
			case i == 2 && n == 5: // repeated
				line("handled", name(i), "c", tick, tick+2*time.Millisecond)
				line("handled", name(i), "c", tick, tick+9*time.Second)
			case i == 3 && n == 6: // known from its maker, and handled late
				line("fired", name(i), "d", tick, tick)
				line("handled", name(i), "d", -1, tick+1500*time.Millisecond)
			case i == 4: // its tick is known to nobody
				line("handled", name(i), fmt.Sprint("e", n), -1, tick+2*time.Millisecond)
			default:
				line("handled", name(i), fmt.Sprint("f", n), tick, tick+2*time.Millisecond)
			}
		}
	}
	line("handled", name(0), "before", -1, -time.Second)
	b.WriteString("handled schedule00 cut 18000")
	o, err := Count(strings.NewReader(b.String()), from, from.Add(10*time.Second))
	want := Outcome{Ticks: 10 * Schedules, P50: 2, P99: 2, Max: 1500, Missed: 1, Doubled: 1, Repeated: 1}
	if err != nil || o != want {
		t.Errorf("counted %+v, %v; want %+v", o, err, want)
	}
}
