package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// bootShift leaves room for a trillion claims each time the store is opened, so that their numbers never repeat.
const bootShift = 40

// Restore builds all indexes from the store. It is called once, before anything else. What was in flight when the
// process ended is ready again, and counted as a lost lease. Told now and then, progress may be nil.
func (e *Engine) Restore(ctx context.Context, progress func(topic string, messages int)) error {
	if err := e.countBoot(); err != nil {
		return err
	}
	numbers, err := topicNumbers(e.o.Store)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.restoreTopic(n, true, progress); err != nil {
			return err
		}
	}
	if err := e.restoreKV(); err != nil {
		return err
	}
	return e.o.Store.Append(nil, true).Wait(ctx, true)
}

// countBoot makes the numbers of claims begin above all that were ever given.
func (e *Engine) countBoot() error {
	key := appendPrefix(nil, 0, kindBoot)
	boots := uint64(0)
	err := e.o.Store.Read([][]byte{key}, func(_ int, value []byte) {
		if len(value) == 8 {
			boots = binary.BigEndian.Uint64(value)
		}
	})
	if err != nil {
		return err
	}
	boots++
	b := e.o.Store.Batch()
	b.Set(key, binary.BigEndian.AppendUint64(nil, boots), nil)
	e.o.Store.Append(b, true)
	e.claims.Store(boots << bootShift)
	return nil
}

// topicNumbers finds the topics by jumping from one to the next.
func topicNumbers(s Records) ([]uint32, error) {
	var numbers []uint32
	found := errors.New("found")
	for next := uint32(1); ; {
		from, _ := rangeOfTopic(next)
		err := s.Scan(from, []byte{0xff, 0xff, 0xff, 0xff}, func(key, _ []byte) error {
			if len(key) < prefixSize {
				return fmt.Errorf("key %x is not one of this program", key)
			}
			next = binary.BigEndian.Uint32(key)
			return found
		})
		if err == nil {
			return numbers, nil
		}
		if !errors.Is(err, found) {
			return numbers, err
		}
		numbers = append(numbers, next)
		next++
	}
}

// restorer rebuilds one topic.
type restorer struct {
	t        *topic
	number   uint32
	now      moment
	groups   map[uint32]*group
	items    map[*group][]*item
	settled  []settlement
	claims   map[uint64][]storedClaim // by message
	read     int                      // messages
	state    storedState              // scratch
	warm     bool                     // nothing more becomes cold
	progress func(string, int)
}

// storedClaim says of a message that it was in flight in a group when the process ended.
type storedClaim struct {
	group  uint32
	number uint64
}

// restoreTopic rebuilds one topic, with its index if that may be there.
func (e *Engine) restoreTopic(number uint32, indexed bool, progress func(string, int)) error {
	stored, problem, err := readTopic(e.o.Store, number, e.now())
	if err != nil {
		return err
	}
	if problem != nil {
		return damaged(fmt.Sprintf("the record of topic number %d is damaged", number), problem)
	}
	r := &restorer{number: number, now: e.now(), groups: map[uint32]*group{}, items: map[*group][]*item{},
		claims: map[uint64][]storedClaim{}, progress: progress}
	r.open(e, stored)
	if err := r.readClaims(); err != nil {
		return err
	}
	if !indexed {
		err = r.readMessages()
	} else if !r.readIndex() {
		return e.restoreTopic(number, false, progress)
	}
	if err != nil {
		return err
	}
	if err := r.readKnown(); err != nil {
		return err
	}
	r.arrange()
	e.stored.Add(int64(r.t.log.count + r.t.cold.count))
	e.number = max(e.number, number)
	e.topics.Store(r.t.name, r.t)
	r.t.mu.Lock()
	r.t.unlock(r.now)
	if progress != nil {
		progress(r.t.name, r.t.log.count+r.t.cold.count)
	}
	return nil
}

func damaged(what string, cause error) error {
	return driver.NewError(driver.ErrInvalid, what, "restore the directory from a backup; ferry doctor says what else "+
		"is damaged", cause)
}

// readTopic reads the record of a topic, or says what is wrong with it.
func readTopic(s Records, number uint32, now moment) (t *topicRecord, problem, err error) {
	t, problem = &topicRecord{}, errors.New("it is missing")
	err = s.Read([][]byte{appendPrefix(nil, number, kindTopic)}, func(_ int, value []byte) {
		if value != nil {
			problem = readRecord(value, t, now)
		}
	})
	return t, problem, err
}

// open makes the topic and its groups.
func (r *restorer) open(e *Engine, stored *topicRecord) {
	r.t = newTopic(e, stored.name)
	r.t.topicRecord = *stored
	r.t.journal.number, r.t.journal.cleared = r.number, stored.head
	for _, g := range r.t.groups {
		g.open(r.t)
		r.groups[g.number] = g
	}
}

// scan calls use with the records between two keys, which have numbers, or else are states of messages that have.
func (r *restorer) scan(from, to []byte, use func(number uint64, state bool, key, value []byte) error) error {
	return r.t.e.o.Store.Scan(from, to, func(key, value []byte) error {
		number, state, ok := numberOf(key)
		if !ok {
			return damaged(fmt.Sprintf("key %x of topic %q is not one of this program", key, r.t.name), nil)
		}
		return use(number, state, key, value)
	})
}

// readClaims reads what was in flight when the process ended.
func (r *restorer) readClaims() error {
	from, to := rangeOf(r.number, kindClaim)
	return r.scan(from, to, func(number uint64, _ bool, key, value []byte) error {
		var c claimRecord
		if err := readRecord(value, &c, r.now); err != nil {
			return damaged(fmt.Sprintf("the record of claim %d of topic %q is damaged", number, r.t.name), err)
		}
		for i, seq := range c.seqs {
			r.claims[seq] = append(r.claims[seq], storedClaim{c.group, number - uint64(i)})
		}
		r.t.note().Delete(key)
		return nil
	})
}

// loseClaims counts the leases of a ready item that were lost when the process ended.
func (r *restorer) loseClaims(it *item, s *storedItem) {
	for _, c := range r.claims[it.e.seq] {
		if c.group == s.group && c.number > s.resolved {
			it.loseLease(c.number == s.begunClaim)
			it.g.stats.Redelivered++
			r.t.touch(it.e)
		}
	}
}

// readKnown reads the ids that are remembered. Those whose time is over are forgotten as always.
func (r *restorer) readKnown() error {
	for _, m := range [...]*memory{&r.t.dedupIDs, &r.t.ownIDs} {
		from, to := rangeOf(r.number, m.kind)
		err := r.t.e.o.Store.Scan(from, to, func(key, value []byte) error {
			var k known
			if err := readRecord(value, &k, r.now); err != nil {
				return damaged(fmt.Sprintf("a remembered id of topic %q is damaged", r.t.name), err)
			}
			m.remember(remembered{string(key[prefixSize:]), k.message, k.seq, r.now.read(k.until)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// arrange links all items as if they had just arrived, in their order.
func (r *restorer) arrange() {
	t := r.t
	for _, g := range t.groups {
		items := r.items[g]
		slices.SortStableFunc(items, func(a, b *item) int { return cmp.Compare(a.Place, b.Place) })
		for _, it := range items {
			g.relink(it)
		}
		slices.SortStableFunc(items, func(a, b *item) int { return cmp.Compare(a.at, b.at) })
		for _, it := range items {
			if it.state == ready {
				it.at = g.ready.add(it.at)
			}
		}
	}
	slices.SortStableFunc(r.settled, func(a, b settlement) int { return cmp.Compare(a.at, b.at) })
	t.settled = r.settled
}

// relink puts an item where its state needs it to be.
func (g *group) relink(it *item) {
	if it.state == ready {
		g.place(it)
		return
	}
	g.t.waiting.Add(&it.Node, int64(it.at))
	if !it.Tail && g.strict(it) {
		g.queue.Block(&it.Node, it.content().key)
	}
}
