package redisstream

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// smallClaim is how many entries are read by the claim script itself, in one round trip. For more, the owner reads:
// that takes three, but their bodies do not pass through a script, which would cost the server more than reading them.
// What was read before and put aside is given out by the script, as many as there is room for.
const smallClaim = 16

// claimed is what came of a claim.
type claimed struct {
	ds   []*driver.Delivery
	more bool          // there may be more
	deep bool          // there is much more
	next time.Duration // until something is due
}

// send makes claims: the script of each in one round trip, or one of much, of which we read the most ourselves.
func (s *subscription) send(ctx context.Context, claims []*claim, room int) (failed error) {
	if c := claims[0]; c.x.deep && room > smallClaim {
		return c.takeMuch(ctx, room)
	}
	most := room / len(claims)
	calls := make([]*scriptCall, len(claims))
	for i, c := range claims {
		calls[i] = &scriptCall{part: c.part, script: &s.d.scripts.claim, args: c.args(most, false)}
	}
	_ = s.d.runAll(ctx, calls)
	for i, c := range claims {
		if _, err := c.answer(ctx, calls[i].reply, calls[i].err); err != nil {
			failed = err
			continue
		}
		c.got.deep = len(c.got.ds) >= min(most, smallClaim)
		c.got.more = c.got.more || c.got.deep
	}
	return failed
}

// claim is one claim from a partition.
type claim struct {
	s     *subscription
	at    int
	part  *partition
	x     assignment
	lease string
	begun time.Time
	now   time.Time // the server's
	got   claimed
	conn  *goredis.Conn // of a claim of much, which is one transaction; else nil
	place int           // of the next delivery in the claim, if that is noted whole
	room  []taken       // for deliveries that are to come
}

// run calls a script of the partition, by the connection that the claim has, if it has one.
func (c *claim) run(ctx context.Context, s *script, args ...any) (redisconn.Reply, error) {
	if c.conn == nil {
		return c.part.run(ctx, s, args...)
	}
	return c.part.runOn(ctx, c.conn, s, args)
}

// taken is a delivery and its token: many are made at once.
type taken struct {
	driver.Delivery
	token token
}

// expect makes room for deliveries.
func (c *claim) expect(n int) {
	c.room = make([]taken, n)
	c.got.ds = slices.Grow(c.got.ds, n)
}

func (c *claim) args(most int, deep bool) []any {
	s, o := c.s, &c.s.Options
	return []any{o.Group, s.ID, c.x.epoch, c.lease, most, o.Lease.Milliseconds(), o.MaxRun, o.Instance,
		s.d.o.Window, s.Steps[0], s.Steps[1], s.Steps[2], s.Steps[3], c.x.lost, smallClaim, redisconn.Flag(deep)}
}

// heard notes whether an answer came: what an unknown claim took is returned by the next one.
func (c *claim) heard(err error) {
	s := c.s
	s.Mu.Lock()
	defer s.Mu.Unlock()
	x := &s.assignments[c.at]
	switch {
	case errors.Is(err, driver.ErrUnknown):
		x.lost += c.lease + " "
	case err == nil:
		x.lost = strings.TrimPrefix(x.lost, c.x.lost)
		c.x.lost = ""
	}
}

// refused reads the answers of one who may not claim.
func (c *claim) refused(reply redisconn.Reply) (bool, error) {
	c.got.next = time.Hour
	switch reply.Text(0) {
	case "stale":
		return true, c.s.gone()
	case "lost":
		c.s.dispossess(c.at, c.x.epoch)
		return true, nil
	}
	ms, err := strconv.ParseInt(reply.Text(1), 10, 64)
	if err != nil {
		return true, reply.ErrShape("claim")
	}
	c.now = time.UnixMilli(ms)
	return false, nil
}

// answer reads the answer of the claim script, and tells whether the owner may read the rest itself.
func (c *claim) answer(ctx context.Context, reply redisconn.Reply, err error) (read bool, _ error) {
	c.heard(err)
	if err != nil {
		c.got.next = time.Hour
		c.got.more = true
		return false, err
	}
	if no, err := c.refused(reply); no || err != nil {
		return false, err
	}
	if due, err := strconv.ParseInt(reply.Text(2), 10, 64); err == nil {
		c.got.next = time.Duration(min(max(due-c.now.UnixMilli(), 0), time.Hour.Milliseconds())) * time.Millisecond
	}
	c.expect(len(reply.List(4)) + len(reply.List(5)))
	had := len(c.got.ds)
	defer func() { c.s.Hold(c.got.ds[had:]) }()
	for _, v := range reply.List(4) {
		item := redisconn.ReplyOf(v)
		if err := c.take(ctx, item, item.List(5),
			history{item.Text(1), item.Text(2), item.Text(3), item.Text(4)}); err != nil {
			return false, err
		}
	}
	notes := reply.List(6)
	for i, v := range reply.List(5) {
		item := redisconn.ReplyOf(v)
		c.place = placeIf(reply.Text(7), i)
		if err := c.take(ctx, item, item.List(1), historyOfNote(notes.Text(i))); err != nil {
			return false, err
		}
	}
	c.got.more = c.got.more || reply.Text(3) == "2"
	return reply.Text(3) == "1", nil
}

// placeIf returns the place of a delivery in its claim, from 1, if that is noted whole.
func placeIf(whole string, i int) int {
	if whole == "" {
		return 0
	}
	return i + 1
}

// history is what was before a delivery: failed attempts, lost leases, its cause, and when the message was published;
// empty where there is nothing to tell.
type history struct{ failed, lost, cause, published string }

// historyOfNote reads what META has of an entry that was never delivered: published, bytes, expires, cause (and since
// when it is due), id.
func historyOfNote(note string) history {
	if note == "" {
		return history{}
	}
	f := strings.SplitN(note, " ", 5)
	if len(f) < 4 {
		return history{}
	}
	cause, _, _ := strings.Cut(f[3], "@")
	return history{cause: cause, published: f[0]}
}

// take makes a delivery of an entry, of which item begins with the id. One that cannot be decoded goes to the parse
// errors.
func (c *claim) take(ctx context.Context, item, fields redisconn.Reply, h history) error {
	if len(c.room) == 0 {
		c.room = make([]taken, 1)
	}
	x := &c.room[0]
	c.room = c.room[1:]
	x.token = token{s: c.s, part: c.part, id: item.Text(0), lease: c.lease, place: c.place,
		until: c.begun.Add(c.s.Options.Lease)}
	if err := c.fill(x, fields, h); err != nil {
		c.got.more = true
		_, err := c.run(ctx, &c.s.d.scripts.invalid, x.token.id, err.Error())
		return err
	}
	c.got.ds = append(c.got.ds, &x.Delivery)
	return nil
}

// fill makes a delivery of the fields of an entry.
func (c *claim) fill(x *taken, fields redisconn.Reply, h history) error {
	t := &x.token
	m, size, err := decode(fields, t.id)
	if err != nil {
		return err
	}
	ref := c.part.ref(t.id)
	m.Topic, m.PublishedAt = c.s.Options.Topic, time.UnixMilli(int64(ref.Pos))
	if h.published != "" {
		m.PublishedAt = redisconn.Wall(h.published)
	}
	if err := m.ValidateStored(); err != nil {
		return err
	}
	t.name, t.key, t.size = m.ID, m.Key, size
	x.Delivery = driver.Delivery{Message: m, Group: c.s.Options.Group, Ref: ref, Attempt: 1, Deliveries: 1,
		ClaimedAt: c.now, LeaseUntil: t.until, Token: t}
	if h.cause != "" {
		failed, _ := strconv.Atoi(h.failed)
		lost, _ := strconv.Atoi(h.lost)
		cause, _ := strconv.Atoi(h.cause)
		x.Attempt, x.Deliveries, x.Cause = failed+1, lost+1, driver.Cause(cause)
	}
	return nil
}
