package disk

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// look calls f, which reads, unless the store is closed. A bit that is not covered by a checksum can make Pebble panic
// instead of telling an error: then that is one. A panic of ours, while what was read is being used, stays what it is.
func (s *store) look(ours *bool, f func() error) (err error) {
	if err := s.readers.enter(); err != nil {
		return err
	}
	defer s.readers.leave()
	defer func() {
		if *ours {
			return
		}
		if p := recover(); p != nil {
			s.unreadable.Store(true)
			err = fmt.Errorf("pebble cannot read a damaged file: %v", p)
		}
	}()
	return f()
}

// Read looks keys up. Several are read in their order by one iterator, which finds the next one near the last.
func (s *store) Read(keys [][]byte, then func(i int, value []byte)) error {
	ours := false
	return s.look(&ours, func() error {
		use := func(i int, value []byte) {
			ours = true
			then(i, value)
			ours = false
		}
		if len(keys) < 2 {
			return s.readEach(keys, use)
		}
		return s.readSorted(keys, use)
	})
}

func (s *store) readSorted(keys [][]byte, use func(i int, value []byte)) (err error) {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	byKey := func(a, b int) int { return bytes.Compare(keys[a], keys[b]) }
	if !slices.IsSortedFunc(order, byKey) {
		slices.SortFunc(order, byKey)
	}
	last := keys[order[len(order)-1]]
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: keys[order[0]], UpperBound: append(bytes.Clone(last), 0)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	it.First()
	for _, i := range order {
		// The next record is often the one that is wanted next.
		if it.Valid() && bytes.Compare(it.Key(), keys[i]) < 0 && it.Next() && bytes.Compare(it.Key(), keys[i]) < 0 {
			it.SeekGE(keys[i])
		}
		if !it.Valid() || !bytes.Equal(it.Key(), keys[i]) {
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
func (s *store) Scan(from, to []byte, use func(key, value []byte) error) error {
	ours := false
	return s.look(&ours, func() (err error) {
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
			ours = true
			if err := use(it.Key(), value); err != nil {
				return err
			}
			ours = false
		}
		return nil
	})
}
