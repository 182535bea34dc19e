package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// maxSilent is how many lost deliveries of a message are remembered that had begun.
const maxSilent = 16

// losses are what is known of the handlers of an item. Most items have none.
type losses struct {
	begun  string   // the delivery whose handler was about to start, as its record in the retry log says
	silent []string // lost deliveries that had begun and count: nobody has heard of their holders since
}

func (it *Item) losses() losses {
	if it.past == nil {
		return losses{}
	}
	return *it.past
}

func (it *Item) setBegun(token string) {
	if past := it.losses(); past.begun != token {
		it.past = &losses{token, past.silent}
	}
}

// lose counts a lost lease: the first, whoever held it, and others whose handler had begun. That one's token is given,
// and known from then on.
func (it *Item) lose(begun string) {
	if begun != "" || !it.once {
		it.lost++
	}
	it.once = true
	it.changes++
	it.setBegun("")
	if begun != "" {
		silent := it.losses().silent
		it.past = &losses{silent: append(slices.Clone(silent[max(0, len(silent)+1-maxSilent):]), begun)}
	}
}

// hear takes back the count of a lost delivery whose holder lives, and reports whether it counted.
func (it *Item) hear(token string) bool {
	past := it.losses()
	at := slices.Index(past.silent, token)
	if at < 0 {
		return false
	}
	it.past = &losses{past.begun, slices.Delete(slices.Clone(past.silent), at, at+1)}
	it.lost = max(0, it.lost-1)
	it.changes++
	return true
}

// unbegin is told that a delivery whose handler had begun went back in order. Its record must not say that it had when
// the next one is lost.
func (m *member) unbegin(it *Item) {
	if it.losses().begun != "" {
		it.setBegun("")
		it.changes++
		it.p.suspect(it)
	}
}

// noteSilent notes that a delivery was lost whose handler had begun: its holder may speak of it again.
func (c *claim) noteSilent() {
	if !c.begun {
		return
	}
	c.silent = true
	s := c.sub
	s.silent = append(s.silent[max(0, len(s.silent)+1-maxSilentClaims):], c)
}

// maxSilentClaims bounds the lost deliveries that a subscription may speak of when it is closed.
const maxSilentClaims = 10_000

// heard is told that the holder speaks of a delivery that it has lost. It returns the notice for the owner of the
// partition, if that is another one or may be.
func (c *claim) heard(now time.Time) []*kgo.Record {
	if !c.begun {
		return nil
	}
	m := c.sub.m
	sure := m.vouched(now)
	switch {
	case c.silent:
		c.silent = false
		if p := m.parts[c.p.id]; p != nil && sure {
			p.hear(c.String(), c.logKey)
			return nil
		}
	case !c.ended && !sure && !c.spoken: // see refuse
		c.spoken = true
	default:
		return nil
	}
	return []*kgo.Record{loggedAs(m.retryName, c.p.id, noticePrefix+c.String(), []byte(c.logKey),
		record.State{Insert: true, Offset: -1})}
}

// tell stores notices, and waits a while for it. They are on their way all the same when it was not long enough.
func (m saver) tell(ctx context.Context, notices []*kgo.Record) {
	if len(notices) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.d.cluster.Settings.Session)
	defer cancel()
	m.d.cluster.ProduceEach(ctx, notices)
}

// hear takes a notice about a message of an owned partition.
func (p *partition) hear(token, logKey string) {
	if it := p.items.of(keyOf(logKey)); it != nil && it.hear(token) {
		p.suspect(it)
	}
}
