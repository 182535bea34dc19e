package rawpebble

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// read handles and deletes batches until it is stopped.
func (c *consumer) read() error {
	for {
		ids := c.session.waiting.take(c.batch)
		if len(ids) == 0 {
			return nil
		}
		if err := c.work(ids); err != nil {
			return err
		}
		c.session.waiting.deleted(len(ids))
	}
}

func (c *consumer) work(ids []uint64) (err error) {
	it, err := c.session.db.NewIter(&pebble.IterOptions{LowerBound: key(ids[0]), UpperBound: key(ids[len(ids)-1] + 1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	done := c.session.db.NewBatch()
	defer func() { err = errors.Join(err, done.Close()) }()
	it.First()
	for _, id := range ids {
		want := key(id)
		if it.Valid() && bytes.Compare(it.Key(), want) < 0 { // others took what lies between
			it.SeekGE(want)
		}
		if !it.Valid() || !bytes.Equal(it.Key(), want) {
			return fmt.Errorf("record %d is missing: %w", id, it.Error())
		}
		body, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := errors.Join(c.handle(body), done.Delete(want, nil)); err != nil {
			return err
		}
		it.Next()
	}
	return done.Commit(pebble.NoSync)
}
