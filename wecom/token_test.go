package wecom_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// All who need a token at once, in two processes, ask the vendor once; and once more when it has ended.
func TestTokenIsShared(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	other := r.pipeline(wecom.Options{})
	states := func(p *wecom.Pipeline) {
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				if _, _, err := p.Client().State(t.Context(), "kf1", "ann"); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
	}
	states(r.p)
	states(other)
	if n := r.vendor.Calls("gettoken"); n != 1 {
		t.Errorf("%d tokens", n)
	}
	r.vendor.ExpireTokens()
	states(r.p)
	states(other)
	if n := r.vendor.Calls("gettoken"); n != 2 {
		t.Errorf("%d tokens after the first ended", n)
	}
	if r.p.Stats().TokenUntil.IsZero() {
		t.Error("its end is not known")
	}
}

// Who waits for a request that fails fails with it, and does not ask the vendor once more; who waits for one that its
// caller gave up asks anew.
func TestFailedRequestIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		slow := errors.New("slow")
		get, err := wecom.Tokens(newBroker(t).Driver().KV(), func(ctx context.Context) (string, time.Duration, error) {
			asked.Add(1)
			select {
			case <-time.After(20 * time.Second):
				return "", 0, slow
			case <-ctx.Done():
				return "", 0, ctx.Err()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		impatient, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		start := time.Now()
		var callers sync.WaitGroup
		callers.Go(func() {
			if _, err := get(impatient, ""); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		synctest.Wait() // the impatient one asks
		for range 20 {
			callers.Go(func() {
				if _, err := get(t.Context(), ""); !errors.Is(err, slow) {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if n, took := asked.Load(), time.Since(start); n != 2 || took != 21*time.Second {
			t.Errorf("%d requests in %v", n, took)
		}
	})
}

// A token that is refused is replaced once for each call, whatever the vendor's reason.
func TestRefusedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	for _, code := range []int{wecom.CodeWrongSecret, wecom.CodeWrongToken, wecom.CodeExpiredToken} {
		r := newRig(t, wecomtest.Options{}, wecom.Options{})
		r.vendor.Fail("kf/service_state/get", 1, code)
		_, _, err := r.p.Client().State(t.Context(), "kf1", "ann")
		if n := r.vendor.Calls("gettoken"); err != nil || n != 2 {
			t.Errorf("%d: %v, %d tokens", code, err, n)
		}
		r.vendor.Fail("kf/service_state/get", 2, code)
		_, _, err = r.p.Client().State(t.Context(), "kf1", "ann")
		if wecom.Code(err) != code || !errors.Is(err, ferry.ErrRefused) {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// Who reads the broker does not read the token, and a changed secret does not use it.
func TestTokenIsSealed(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	r.ok(r.p.Client().Check(t.Context()))
	page, err := r.broker.Driver().KV().List(t.Context(), driver.KVQuery{Bucket: "wecom", Prefix: "token/"})
	r.ok(err)
	if len(page.Values) != 1 || page.Values[0].Left <= 0 {
		t.Fatalf("%+v", page)
	}
	config := r.vendor.Config()
	config.Secret = "another"
	p, err := wecom.New(r.broker, config, wecom.Options{})
	r.ok(err)
	defer p.Close()
	err = p.Client().Check(t.Context())
	if wecom.Code(err) != wecom.CodeWrongSecret || strings.Contains(err.Error(), "another") {
		t.Errorf("%v", err)
	}
}

// Neither the secret nor a token is in the error of a vendor that cannot be reached.
func TestUnreachableVendor(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	r.ok(r.p.Client().Check(t.Context()))
	secret := string(r.vendor.Config().Secret)
	other := r.pipeline(wecom.Options{})
	r.vendor.Close()
	_, _, err := r.p.Client().State(t.Context(), "kf1", "ann")
	if err == nil || strings.Contains(err.Error(), "access_token") {
		t.Error(err)
	}
	r.ok(r.broker.Driver().KV().Apply(t.Context(), "wecom", driver.KVOptions{},
		driver.Write{Name: "token/" + r.vendor.Config().Corp, Delete: true})[0].Err)
	if err := other.Client().Check(t.Context()); err == nil || strings.Contains(err.Error(), secret) {
		t.Error(err)
	}
}

// The vendor's address is guarded: a private one must be allowed.
func TestPrivateVendor(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	config := r.vendor.Config()
	config.AllowPrivate = nil
	if _, err := wecom.New(r.broker, config, wecom.Options{}); !errors.Is(err, ferry.ErrRefused) {
		t.Error(err)
	}
}
