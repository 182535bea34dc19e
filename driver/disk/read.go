package disk

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// reading is one look at the store. A bit that is not covered by a checksum can make Pebble panic instead of telling an
// error.
type reading struct {
	s    *store
	ours bool // what was read is being used
	err  *error
}

// damaged makes a panic of Pebble an error; one of ours stays what it is.
func (r *reading) damaged() {
	if r.ours {
		return
	}
	if p := recover(); p != nil {
		r.s.unreadable.Store(true)
		*r.err = fmt.Errorf("pebble cannot read a damaged file: %v", p)
	}
}

// Read looks keys up. Several are read in their order by one iterator, which finds the next one near the last.
func (s *store) Read(keys [][]byte, then func(i int, value []byte)) (err error) {
	if err := s.readers.enter(); err != nil {
		return err
	}
	defer s.readers.leave()
	r := reading{s: s, err: &err}
	defer r.damaged()
	use := func(i int, value []byte) {
		r.ours = true
		then(i, value)
		r.ours = false
	}
	if len(keys) < 2 {
		return s.readEach(keys, use)
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	byKey := func(a, b int) int { return bytes.Compare(keys[a], keys[b]) }
	if !slices.IsSortedFunc(order, byKey) {
		slices.SortFunc(order, byKey)
	}
	return s.readSorted(keys, order, use)
}

func (s *store) readSorted(keys [][]byte, order []int, use func(i int, value []byte)) (err error) {
	last := keys[order[len(order)-1]]
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: keys[order[0]], UpperBound: append(bytes.Clone(last), 0)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for n, i := range order {
		// The next record is often the one that is wanted next.
		found := n > 0 && it.Valid() && it.Next() && bytes.Equal(it.Key(), keys[i])
		if !found && (!it.SeekGE(keys[i]) || !bytes.Equal(it.Key(), keys[i])) {
			if err := it.Error(); err != nil {
				return err
			}
			use(i, nil)
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		use(i, value)
	}
	return nil
}

func (s *store) readEach(keys [][]byte, use func(i int, value []byte)) error {
	for i, key := range keys {
		value, closer, err := s.db.Get(key)
		switch {
		case errors.Is(err, pebble.ErrNotFound):
			use(i, nil)
			continue
		case err != nil:
			return err
		}
		use(i, value)
		if err := closer.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Scan walks over a range. It ends early when the store is to be closed.
func (s *store) Scan(from, to []byte, use func(key, value []byte) error) (err error) {
	if err := s.readers.enter(); err != nil {
		return err
	}
	defer s.readers.leave()
	r := reading{s: s, err: &err}
	defer r.damaged()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for it.First(); it.Valid(); it.Next() {
		value, err := it.ValueAndErr()
		if err == nil {
			err = s.readers.refused()
		}
		if err != nil {
			return err
		}
		r.ours = true
		if err := use(it.Key(), value); err != nil {
			return err
		}
		r.ours = false
	}
	return nil
}
