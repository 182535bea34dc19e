package consumer

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/retrylog"
)

// maxSilent is how many lost deliveries of a message are remembered that had begun.
const maxSilent = 16

// losses are what is known of the handlers of an item. Most items have none.
type losses struct {
	begun  string   // the delivery whose handler was about to start, as its record in the retry log says
	silent []string // lost deliveries that had begun and count: nobody has heard of their holders since
}

func (it *Item) begun() string {
	if it.past == nil {
		return ""
	}
	return it.past.begun
}

func (it *Item) silent() []string {
	if it.past == nil {
		return nil
	}
	return it.past.silent
}

func (it *Item) setBegun(token string) {
	if it.begun() == token {
		return
	}
	it.past = &losses{begun: token, silent: it.silent()}
}

// lose counts a lost lease: the first, whoever held it, and others whose handler had begun. That one's token is given,
// and known from then on.
func (it *Item) lose(begun string) {
	if begun != "" || !it.once {
		it.lost++
	}
	it.once = true
	it.changes++
	silent := it.silent()
	if begun != "" {
		silent = append(slices.Clone(silent[max(0, len(silent)+1-maxSilent):]), begun)
	}
	if begun != "" || it.past != nil {
		it.past = &losses{silent: silent}
	}
}

// hear takes back the count of a lost delivery whose holder lives, and reports whether it counted.
func (it *Item) hear(token string) bool {
	at := slices.Index(it.silent(), token)
	if at < 0 {
		return false
	}
	it.past = &losses{begun: it.past.begun, silent: slices.Delete(slices.Clone(it.past.silent), at, at+1)}
	it.lost = max(0, it.lost-1)
	it.changes++
	return true
}

// unbegin is told that a delivery whose handler had begun went back in order. Its record must not say that it had when
// the next one is lost.
func (m *member) unbegin(it *Item) {
	if it.begun() == "" {
		return
	}
	it.setBegun("")
	it.changes++
	m.saver.suspect(it)
	m.saving.Give()
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

// heard is told that a holder speaks of a delivery that it has lost. It returns the notice for the owner of the
// partition, if that is another one or may be.
func (s *subscription) heard(d *driver.Delivery, now time.Time) *kgo.Record {
	c, ok := d.Token.(*claim)
	if !ok || c.sub != s || !c.begun {
		return nil
	}
	sure := s.m.vouched(now)
	switch {
	case c.silent:
		c.silent = false
		if p := s.m.parts[c.p.id]; p != nil && sure {
			p.hear(c.String(), c.logKey)
			return nil
		}
	case !c.ended && !sure && !c.spoken: // see forfeit
		c.spoken = true
	default:
		return nil
	}
	return c.notice()
}

func (c *claim) notice() *kgo.Record {
	return &kgo.Record{Topic: c.p.m.retryName, Partition: c.p.id, Key: []byte(retrylog.NoticePrefix + c.String()),
		Value: []byte(c.logKey), Headers: []kgo.RecordHeader{record.State{Insert: true, Offset: -1}.Header()}}
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

// lastNotices are those of a subscription that closes: who closes it lives.
func (s *subscription) lastNotices(now time.Time) (notices []*kgo.Record) {
	for _, c := range s.silent {
		if !c.silent {
			continue
		}
		if r := s.heard(&driver.Delivery{Token: c}, now); r != nil {
			notices = append(notices, r)
		}
	}
	s.silent = nil
	return notices
}

// hear takes a notice about a message of an owned partition.
func (p *partition) hear(token, logKey string) {
	if it := p.items.of(keyOf(logKey)); it != nil && it.hear(token) {
		p.m.saver.suspect(it)
		p.m.saving.Give()
	}
}

// noticeAdded takes a notice that comes while we own the retry log, and ends it.
func (p *partition) noticeAdded(key string, r *kgo.Record) (end *kgo.Record) {
	if r.Value == nil {
		return nil
	}
	p.hear(strings.TrimPrefix(key, retrylog.NoticePrefix), string(r.Value))
	return p.m.retryEnd(p, key)
}
