package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// Digest collects messages to one destination with the same fallbacks, for a time or a number of them, whichever comes
// first. Each message is in one digest, as its title and the begin of its body. Data of all go along; of a name that
// several have, that of the first.
type Digest struct {
	// Window is how long after the first message, at most 7 days. Defaults to one minute.
	Window time.Duration
	// Count is how many messages, at most 100. Defaults to 100.
	Count int
}

const (
	maxDigest = 100
	maxWindow = 7 * 24 * time.Hour
	// bytes of the title and the body of an entry after the first
	entryTitle, entryBody = 200, 300
	// bytes of texts after which a digest is full: it must fit into one value of the broker
	fullDigest = 16 << 10
)

func (d Digest) check() error {
	if d.Window < 0 || d.Window > maxWindow || d.Count < 0 || d.Count > maxDigest {
		return invalid("use at most 7 days and 100 messages", "the digest of a notification is out of range")
	}
	return nil
}

func (d Digest) resolved() Digest {
	if d.Window == 0 {
		d.Window = time.Minute
	}
	if d.Count == 0 {
		d.Count = maxDigest
	}
	return d
}

// collection is the digest that collects, and the last one that was ended: its job may not be queued yet.
type collection struct {
	Open   *digest `json:"open,omitempty"`
	Closed *digest `json:"closed,omitempty"`
}

// digest is what is collected for a destination.
type digest struct {
	Number  uint64  `json:"number"`
	Due     int64   `json:"due"` // when it ends, in milliseconds of the backend's clock
	Entries []entry `json:"entries"`
	// Full says that its last entry ended it, before it was due.
	Full bool `json:"full,omitempty"`
}

// entry is one collected message. The first one is whole: it may stay alone.
type entry struct {
	reference
	Title    string            `json:"title,omitempty"`
	Body     string            `json:"body,omitempty"`
	Format   Format            `json:"format,omitempty"`
	Priority Priority          `json:"priority,omitempty"`
	Data     map[string]string `json:"data,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

func (d *digest) has(r reference) bool {
	return d != nil && slices.ContainsFunc(d.Entries, func(e entry) bool { return e.reference == r })
}

// size is how many bytes of text a digest has.
func (d *digest) size() (n int) {
	for _, e := range d.Entries {
		n += len(e.Title) + len(e.Body) + len(e.ID)
		for name, value := range e.Data {
			n += len(name) + len(value)
		}
	}
	return n
}

// collect puts the job into the open digest of its collection, or opens one, and lets the job be acknowledged. Done
// twice it changes nothing. ErrTooLarge: the collection has no room.
func (a *attempt) collect(ctx context.Context, o Digest, of func(*destination) *collection) error {
	var joined digest
	now := a.hub.clock.now().UnixMilli()
	err := a.hub.places.update(ctx, a.job.collection(), func(d *destination) bool {
		c, r := of(d), a.job.reference()
		switch {
		case c.Closed.has(r):
			joined = *c.Closed
			return false
		case !c.Open.has(r):
			d.join(c, a.job, now+o.Window.Milliseconds())
		}
		joined = *c.Open
		if len(joined.Entries) >= o.Count || joined.size() >= fullDigest {
			joined.Full = true
			c.Open, c.Closed = nil, &joined
		}
		return true
	})
	switch {
	case errors.Is(err, ferry.ErrTooLarge):
		return err
	case err != nil:
		return a.hub.away(ctx, err)
	}
	a.counts.collected.Add(1)
	if joined.Full {
		return a.hub.queueDigest(ctx, a.job.digest(joined.Number), joined.Entries)
	}
	return a.queueFlush(ctx, joined, now)
}

// join adds a job to the open digest.
func (d *destination) join(c *collection, j *job, due int64) {
	e := entry{reference: j.reference(), Title: j.Title, Body: j.Body, Format: j.Format, Priority: j.Priority,
		Data: j.Data, Metadata: j.Metadata}
	if c.Open == nil {
		d.Digests++
		c.Open = &digest{Number: d.Digests, Due: due}
	} else {
		e.Title, e.Body = shorten(e.Title, entryTitle), shorten(e.text(), entryBody)
		e.Metadata = nil
		if e.Format == HTML {
			e.Format = Text
		}
	}
	c.Open.Entries = append(c.Open.Entries, e)
}

// text is the body of an entry among others: a tag of HTML would stay open, or be shown.
func (e *entry) text() string {
	if e.Format == HTML {
		return Plain(e.Body)
	}
	return e.Body
}

// collection names what collects the job: one for each destination and its fallbacks.
func (j *job) collection() string {
	name := j.Chain[0].key()
	if len(j.Chain) == 1 {
		return name
	}
	h := sha256.New()
	for _, t := range j.Chain[1:] {
		_, _ = fmt.Fprintf(h, "%q %q\n", t.Channel, t.To) // never fails
	}
	return name + "." + hex.EncodeToString(h.Sum(nil)[:8])
}

// digest is the job of a digest of the job's collection, without its members.
func (j *job) digest(number uint64) job {
	sum := sha256.Sum256([]byte(j.collection()))
	id := fmt.Sprintf("digest-%.40s-%s-%d", j.Chain[0].Channel, hex.EncodeToString(sum[:12]), number)
	return job{ID: id, Chain: j.Chain, Priority: j.Priority, Retry: j.Retry}
}

// queueFlush has the digest ended when it is due. Queued again it is a duplicate.
func (a *attempt) queueFlush(ctx context.Context, d digest, now int64) error {
	flush := a.job.digest(d.Number)
	flush.Flush = d.Number
	opts := append(flush.options(), ferry.ID(flush.name()+"/flush"),
		ferry.Delay(time.Duration(d.Due-now)*time.Millisecond))
	return worker.Emit(ctx, a.hub.o.Topic, flush, opts...)
}

// flush ends a digest that is due, unless it was full before.
func (h *Hub) flush(ctx context.Context, j *job) error {
	var ended digest
	err := h.places.update(ctx, j.collection(), func(d *destination) bool {
		for _, c := range []*collection{&d.Asked, &d.Overflow} {
			switch {
			case c.Open != nil && c.Open.Number == j.Flush:
				ended = *c.Open
				c.Open, c.Closed = nil, &ended
				return true
			// the process was lost before the job was queued
			case c.Closed != nil && c.Closed.Number == j.Flush && !c.Closed.Full:
				ended = *c.Closed
			}
		}
		return false
	})
	if err != nil {
		return h.away(ctx, err)
	}
	return h.queueDigest(ctx, j.digest(j.Flush), ended.Entries)
}

// queueDigest makes one job of what was collected, queued together with the acknowledgement of the one that is handled.
// Queued again it is a duplicate.
func (h *Hub) queueDigest(ctx context.Context, summary job, entries []entry) error {
	entries, err := h.wanted(ctx, entries)
	switch {
	case err != nil:
		return h.away(ctx, err)
	case len(entries) == 0:
		return nil
	}
	var l Limits
	if c, err := h.channel(summary.target()); err == nil { // otherwise sending it fails, and the receipts tell
		l = c.Limits()
	}
	summary.write(entries, l)
	return worker.Emit(ctx, h.o.Topic, summary, summary.options()...)
}

// wanted are the entries that nobody cancelled meanwhile.
func (h *Hub) wanted(ctx context.Context, entries []entry) ([]entry, error) {
	refs := make([]reference, len(entries))
	for i, e := range entries {
		refs[i] = e.reference
	}
	records, err := h.records.get(ctx, refs...)
	if err != nil {
		return nil, err
	}
	var wanted []entry
	for i, e := range entries {
		if s := records[i].Status; s != Cancelled && s != Success {
			wanted = append(wanted, e)
		}
	}
	return wanted, nil
}

// write makes the job the digest of entries. One entry alone is sent as it was.
func (j *job) write(entries []entry, l Limits) {
	j.Members, j.Format, j.Data = nil, Text, map[string]string{}
	if len(l.Formats) == 0 || slices.Contains(l.Formats, Markdown) {
		j.Format = Markdown
	}
	var body strings.Builder
	for _, e := range entries {
		j.Members = append(j.Members, e.reference)
		j.Priority = max(j.Priority, e.Priority)
		body.WriteString(e.line(j.Format))
		for name, value := range e.Data {
			if _, taken := j.Data[name]; !taken {
				j.Data[name] = value
			}
		}
	}
	j.Title = fmt.Sprintf("%d notifications", len(entries))
	j.Body = strings.TrimSuffix(body.String(), "\n")
	if e := entries[0]; len(entries) == 1 {
		j.Title, j.Body, j.Format, j.Metadata = e.Title, e.Body, e.Format, e.Metadata
	}
}

// line is an entry of a digest. What was no markdown does not become some in it.
func (e *entry) line(f Format) string {
	body := oneLine(e.text())
	if f != Markdown {
		return fmt.Sprintf("- %s: %s\n", e.Title, body)
	}
	if e.Format != Markdown {
		body = Literal(body)
	}
	return fmt.Sprintf("- **%s** %s\n", Literal(e.Title), body)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// shorten cuts a text to n bytes at most, between runes.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
