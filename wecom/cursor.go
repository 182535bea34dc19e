package wecom

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Cursor is how far an account is pulled.
type Cursor struct {
	Account string
	// Position is the vendor's word for it; empty: at the beginning of what the vendor keeps, three days.
	Position string
	// Pulled is the broker's time of the last pull that succeeded; zero if there was none.
	Pulled time.Time

	revision uint64
}

// cursorRecord is the stored form of a Cursor.
type cursorRecord struct {
	Position string `json:"cursor"`
}

const cursorPrefix = "cursor/"

// Cursor returns how far an account is pulled.
func (p *Pipeline) Cursor(ctx context.Context, account string) (Cursor, error) {
	if err := checkAccount(account); err != nil {
		return Cursor{}, err
	}
	values, err := p.kv.Get(ctx, bucket, cursorPrefix+account)
	if err != nil {
		return Cursor{}, err
	}
	if values[0].Revision == 0 {
		return Cursor{Account: account}, nil
	}
	return cursorOf(values[0])
}

// Cursors returns how far every account is pulled that was pulled once, in order of their names.
func (p *Pipeline) Cursors(ctx context.Context) ([]Cursor, error) {
	var all []Cursor
	q := driver.KVQuery{Bucket: bucket, Prefix: cursorPrefix, Limit: driver.MaxLimit}
	for {
		found, err := p.kv.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, v := range found.Values {
			c, err := cursorOf(v)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
		if q.After = found.Next; q.After == "" {
			return all, nil
		}
	}
}

// SetCursor sends the next pull of an account to a position, "" for the beginning. What was published already is
// recognised for Config.Recognise, and not published again. A pull that is under way starts anew.
func (p *Pipeline) SetCursor(ctx context.Context, account, position string) error {
	var moved error
	for range cursorTries {
		c, err := p.Cursor(ctx, account)
		if err != nil {
			return err
		}
		if _, moved = p.advance(ctx, c, position); !errors.Is(moved, ferry.ErrConflict) {
			return moved
		}
	}
	return moved
}

// cursorTries is how often SetCursor tries against pulls that move the cursor at the same moment.
const cursorTries = 20

func cursorOf(v driver.Value) (Cursor, error) {
	var r cursorRecord
	account := strings.TrimPrefix(v.Name, cursorPrefix)
	if err := json.Unmarshal(v.Data, &r); err != nil {
		return Cursor{}, driver.NewError(ferry.ErrInvalid, "the cursor of "+account+" cannot be read",
			"set it with 'ferry wecom replay': nothing is lost within three days", err)
	}
	return Cursor{Account: account, Position: r.Position, Pulled: v.Written, revision: v.Revision}, nil
}

// advance moves a cursor that nobody else has moved meanwhile; otherwise the error is an ErrConflict.
func (p *Pipeline) advance(ctx context.Context, c Cursor, position string) (Cursor, error) {
	data, err := json.Marshal(cursorRecord{Position: position})
	if err != nil {
		return c, err
	}
	w := driver.Write{Name: cursorPrefix + c.Account, Data: data, If: driver.Absent, Request: rand.Text()}
	if c.revision != 0 {
		w.If = driver.Condition(c.revision)
	}
	result := p.kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0]
	if errors.Is(result.Err, ferry.ErrUnknown) { // under the same request it is applied once
		result = p.kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0]
	}
	if result.Err != nil {
		return c, result.Err
	}
	c.Position, c.Pulled, c.revision = position, result.Written, result.Revision
	return c, nil
}
