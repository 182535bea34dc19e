package state

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const (
	nap    = 10 * time.Millisecond
	asleep = 10 * time.Millisecond // longer than a nap: the machine did not let the process run
	// quickly is what a server takes at most for a small write.
	quickly = 30 * time.Millisecond
	// harness is its name on the tape.
	harness = "harness"
)

// noteStalls writes down when the machine did not let this process run, until ctx ends.
func noteStalls(ctx context.Context, clock func() int64, record func(Event)) {
	for last := clock(); sleep(ctx, nap); last = clock() {
		if late := clock() - last - int64(nap); late > int64(asleep) {
			record(Event{Kind: kindStall, Stalled: late})
		}
	}
}

// noteDelays writes down when the server of a broker took long for a small write, which is the machine's doing too,
// until ctx ends.
func noteDelays(ctx context.Context, b *ferry.Broker, clock func() int64, record func(Event)) {
	for sleep(ctx, 5*nap) {
		begun := clock()
		b.Driver().KV().Apply(ctx, "torture.probe", driver.KVOptions{}, driver.Write{Name: "probe", Quiet: true})
		if took := clock() - begun - int64(quickly); took > 0 && ctx.Err() == nil {
			record(Event{Kind: kindStall, Stalled: took})
		}
	}
}

// stalled is for how long the machine did not let some of the processes run between two stamps, or the harness.
func stalled(all []Event, from, to int64, of func(process string) bool) time.Duration {
	var spans [][2]int64
	for _, e := range all {
		if e.Kind == kindStall && e.At > from && e.At-e.Stalled < to && (e.Process == harness || of(e.Process)) {
			spans = append(spans, [2]int64{max(from, e.At-e.Stalled), min(to, e.At)})
		}
	}
	slices.SortFunc(spans, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	var total int64
	for _, s := range spans {
		if s[1] > from {
			total += s[1] - max(s[0], from)
			from = s[1]
		}
	}
	return time.Duration(total)
}
