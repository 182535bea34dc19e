package redis_test

import (
	"errors"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// A parse error of before has a problem and no time.
func TestParseErrorsOfBeforeAreRead(t *testing.T) {
	t.Parallel()
	x := newDamaged(t)
	ctx := t.Context()
	if err := errors.Join(x.c.ZAdd(ctx, x.tag+"invalid", goredis.Z{Score: 900, Member: "900"}).Err(),
		x.c.HSet(ctx, x.tag+"raw", "900", "rubbish").Err(),
		x.c.HSet(ctx, x.tag+"problems", "900", "no envelope").Err()); err != nil {
		t.Fatal(err)
	}
	page, err := x.Browse(ctx, driver.Query{Topic: "jobs", State: driver.StateInvalid})
	if err != nil || len(page.Entries) != 1 {
		t.Fatalf("%+v, %v", page.Entries, err)
	}
	if e := page.Entries[0]; e.Problem != "no envelope" || !e.FoundAt.IsZero() || string(e.Raw) != "rubbish" {
		t.Errorf("%+v", e)
	}
}
