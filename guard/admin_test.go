package guard_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
)

func TestAdmin(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := memoryStore()
		limiter := must(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{perKey}}))(t)
		admin := must(guard.NewAdmin(store, "ann"))(t)
		m := &ferry.Message{Key: "a"}
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		passes := func(want bool) {
			t.Helper()
			if err := limiter.Check(r.ctx, m); (err == nil) != want {
				t.Errorf("%v, want it to pass: %v", err, want)
			}
			if v, err := admin.Check(r.ctx, "key", "a", nil); err != nil || v.Admitted != want {
				t.Errorf("%+v, %v; want it to pass: %v", v, err, want)
			}
		}
		if v, err := admin.Check(r.ctx, "key", "never seen", nil); err != nil || !v.Admitted {
			t.Errorf("%+v, %v", v, err)
		}
		do(limiter.Allow(r.ctx, m))
		passes(true)
		do(limiter.Allow(r.ctx, m))
		passes(false)
		if v, err := admin.Check(r.ctx, "key", "a", &guard.Rule{Limit: 3, Window: time.Minute}); err != nil || !v.Admitted {
			t.Errorf("%+v, %v; want it to pass by a rule of 3", v, err)
		}
		do(admin.Override(r.ctx, "key", "a", guard.Rule{Limit: 9, Window: time.Minute}, time.Hour, "campaign"))
		passes(true)
		do(admin.ClearOverride(r.ctx, "key", "a", "over"))
		passes(false)
		do(admin.Whitelist(r.ctx, "key", "a", "partner"))
		passes(true)
		do(admin.Block(r.ctx, "key", "a", time.Hour, "abuse"))
		passes(false)
		s := must(admin.Status(r.ctx, "key", "a"))(t)
		if s.Block == nil || s.Actor != "ann" || s.Reason != "abuse" || s.Whitelisted {
			t.Errorf("%+v", s)
		}
		if p := must(admin.List(r.ctx, guard.Query{Kind: guard.KindBlocked}))(t); len(p.Keys) != 1 {
			t.Errorf("%+v", p)
		}
		do(admin.Unblock(r.ctx, "key", "a", "sorry"))
		passes(false)
		r.until(10 * time.Second)
		passes(true)
		do(admin.Unwhitelist(r.ctx, "key", "a", "tidy"))
		var actions []guard.Action
		for _, c := range must(admin.Audit(r.ctx, 0))(t) {
			actions = append(actions, c.Action)
		}
		equal(t, actions, guard.ActionUnwhitelist, guard.ActionUnblock, guard.ActionBlock, guard.ActionWhitelist,
			guard.ActionClear, guard.ActionOverride)
	})
}

func TestAdminRefuses(t *testing.T) {
	t.Parallel()
	store := memoryStore()
	_, err := guard.NewAdmin(nil, "ann")
	wantError(t, err, driver.ErrInvalid, "needs a store and a name")
	_, err = guard.NewAdmin(store, "")
	wantError(t, err, driver.ErrInvalid, "needs a store and a name")
	admin := must(guard.NewAdmin(store, "ann"))(t)
	ctx := t.Context()
	wantError(t, admin.Block(ctx, "user", "a", time.Hour, ""), driver.ErrInvalid, "needs a reason")
	wantError(t, admin.Block(ctx, "user", "a", -1, "x"), driver.ErrInvalid, "out of range")
	wantError(t, admin.Block(ctx, "a b", "a", 0, "x"), driver.ErrInvalid, "limit name")
	wantError(t, admin.Override(ctx, "user", "a", guard.Rule{}, time.Hour, "x"), driver.ErrInvalid, "limit 0")
	wantError(t, admin.Override(ctx, "user", "a", chat.Rule, 0, "x"), driver.ErrInvalid, "no end")
	_, err = admin.List(ctx, guard.Query{Kind: "weird"})
	wantError(t, err, driver.ErrInvalid, `"weird"`)
	_, err = admin.Check(ctx, "user", "a", &guard.Rule{Limit: -1})
	wantError(t, err, driver.ErrInvalid, "limit -1")
	if changes := must(admin.Audit(ctx, 0))(t); len(changes) != 0 {
		t.Errorf("%+v were noted", changes)
	}
}
