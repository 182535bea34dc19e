package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/internal/redisshell"
)

// groupCensus is one look at a group.
type groupCensus struct {
	c      *census
	name   string
	keys   []string
	fields map[string]string
	chain  map[string]string
	next   map[string]string
	lease  map[string]string
	state  map[string]string
	losses map[string]string
	timer  map[string]bool
	gone   map[string]bool
	dead   map[string]bool
	lanes  map[string]int // item to how often
	queued map[string]int // sequence number to how often it is in lanes
}

func (g *groupCensus) read(ctx context.Context) error {
	g.timer, g.gone, g.dead, g.lanes, g.queued = map[string]bool{}, map[string]bool{}, map[string]bool{},
		map[string]int{}, map[string]int{}
	err := g.c.hashes(ctx, g.keys, map[int]*map[string]string{keyGroup: &g.fields, keyChain: &g.chain, keyNext: &g.next,
		keyLease: &g.lease, keyState: &g.state, keyLosses: &g.losses})
	if err == nil {
		err = g.c.members(ctx, g.keys, map[int]map[string]bool{keyTimer: g.timer, keyGone: g.gone, keyDead: g.dead})
	}
	for key := keyLane; err == nil && key < keyChain; key++ { // lanes, and what is back in them
		err = g.c.each(ctx, g.keys[key], func(text, _ string) {
			g.lanes[text]++
			if it, ok := parseItem(text); ok {
				g.queued[it.seq]++
			}
		})
	}
	return err
}

func (g *groupCensus) wrong(kind, what, first, second, text string) {
	g.c.wrong(kind, g.name, what, first, second, text)
}

// check compares where messages are with where they should be.
func (g *groupCensus) check() {
	flying, held, inFlight := map[string]int{}, map[string]int{}, int64(0) // by their numbers and keys, and all
	for token, record := range g.lease {
		if !g.timer["L"+token] {
			g.wrong("lease", "lease", token, "", "a lease has no end")
		}
		for _, line := range strings.Split(record, "\n")[1:] {
			if it, ok := parseItem(line); ok {
				flying[it.seq]++
				held[it.key]++
				inFlight++
			}
		}
	}
	delete(held, "")
	chained := g.chained(held)
	waiting, dead := g.checkStates()
	letter := g.fields["i"]
	for _, n := range g.c.seqs {
		seq := strconv.FormatUint(n, 10)
		if dead[seq] && !g.dead[seq] {
			g.wrong("orphan", "orphan", seq, g.c.messages[seq].item, "a dead letter is not in the list of them")
		}
		if !g.c.belongs(seq, letter) {
			continue
		}
		switch r := g.c.messages[seq]; {
		case waiting[seq]:
			if !g.timer["W"+seq] {
				g.wrong("orphan", "orphan", seq, r.item, "the message waits, and nothing will wake it")
			}
		case flying[seq] == 0 && g.queued[seq] == 0 && !chained[seq]:
			g.wrong("orphan", "orphan", seq, r.item, "the message is in no state")
		}
	}
	g.checkLanes(flying, letter)
	for seq := range g.next {
		if !chained[seq] && !g.gone[seq] {
			g.wrong("chain", "link", seq, "", "a link of a chain belongs to no chain")
		}
	}
	for seq := range g.losses {
		if !g.c.belongs(seq, letter) {
			g.wrong("ghost", "losses", seq, "", "lost leases are known of a message that is gone")
		}
	}
	for seq := range g.dead {
		if !dead[seq] {
			g.wrong("ghost", "grave", seq, "", "a dead letter is not there")
		}
	}
	for member := range g.timer {
		lease, ofLease := strings.CutPrefix(member, "L")
		wait, ofWait := strings.CutPrefix(member, "W")
		if !ofLease && !ofWait || ofLease && g.lease[lease] == "" || ofWait && !waiting[wait] {
			g.wrong("timer", "timer", member, "", "a timer belongs to nothing")
		}
	}
	counted := func(name string) int64 { return redisshell.Whole(g.fields, name) }
	if counted("inflight") != inFlight || counted("waiting") != int64(len(waiting)) {
		g.wrong("count", "counts", "", "",
			fmt.Sprintf("%d in flight and %d waiting, counted are %s and %s", inFlight, len(waiting), g.fields["inflight"],
				g.fields["waiting"]))
	}
}

func (g *groupCensus) checkStates() (waiting, dead map[string]bool) {
	waiting, dead = map[string]bool{}, map[string]bool{}
	for seq, text := range g.state {
		switch st, _ := parseState(text); st.letter {
		case 'W', 'T':
			waiting[seq] = true
		case 'D':
			dead[seq] = true
		}
	}
	return waiting, dead
}

func (g *groupCensus) checkLanes(flying map[string]int, letter string) {
	for text, n := range g.lanes {
		it, ok := parseItem(text)
		switch {
		case !ok:
			g.wrong("ghost", "ghost", text, "", "a lane has something that is no message")
		case g.gone[it.seq]:
		case !g.c.belongs(it.seq, letter) || flying[it.seq] > 0 || g.dead[it.seq]:
			g.wrong("ghost", "ghost", text, "", "a lane has a message that is gone, or held by somebody")
		case it.key != "" && !strings.HasSuffix(g.chain[it.key], " "+text):
			g.wrong("chain", "head", text, "", fmt.Sprintf("key %q can be claimed, and its chain does not say so", it.key))
		case n > 1:
			g.wrong("double", "double", text, "", "a message is in its lane more than once")
		}
	}
}

// chained walks all chains and returns what is in them; it notes chains that do not agree with the lanes, and with how
// much is held of each key.
func (g *groupCensus) chained(held map[string]int) map[string]bool {
	in := map[string]bool{}
	for key, text := range g.chain {
		f := strings.SplitN(text, " ", 4)
		if len(f) != 4 {
			continue
		}
		last := f[2]
		for at, steps := f[3], 0; at != "" && steps < 1_000_000; steps++ {
			it, ok := parseItem(at)
			if !ok {
				break
			}
			in[it.seq], last = true, it.seq
			at = g.next[it.seq]
		}
		if strconv.Itoa(held[key]) != f[0] || f[3] != "" && (f[1] == "1") != (g.lanes[f[3]] > 0) || last != f[2] {
			g.wrong("chain", "chain", key, "", fmt.Sprintf("key %q is not as its chain says", key))
		}
		delete(held, key)
	}
	for key := range held {
		g.wrong("chain", "chain", key, "", fmt.Sprintf("key %q is held, and has no chain", key))
	}
	return in
}
