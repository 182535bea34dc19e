package wecom_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// With a spool a callback is stored while the broker is away, and the vendor need not call again.
func TestCallbackIsSpooled(t *testing.T) {
	t.Parallel()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	inner, err := memory.New(t.Context(), memory.Options{})
	ok(err)
	away := faulty.New(inner)
	local, err := memory.New(t.Context(), memory.Options{MaxBody: 8 << 20})
	ok(err)
	silent := slog.New(slog.DiscardHandler)
	d, err := spool.New(t.Context(), away, local, spool.Options{Logger: silent})
	ok(err)
	b, err := ferry.New(d, ferry.Options{Logger: silent})
	ok(err)
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	vendor := wecomtest.Start(wecomtest.Options{})
	t.Cleanup(vendor.Close)
	p, err := wecom.New(b, vendor.Config(), wecom.Options{})
	ok(err)
	t.Cleanup(p.Close)
	callbacks := httptest.NewServer(p.Callback())
	t.Cleanup(callbacks.Close)

	disturb(faulty.Fail(errAway), faulty.Fail(errAway), away)
	status, err := vendor.Callback("kf1").Send(t.Context(), callbacks.URL)
	ok(err)
	if waits := d.SpoolStats().Messages; status != http.StatusOK || waits != 1 {
		t.Errorf("%d, %d jobs in the spool", status, waits)
	}
	disturb(nil, nil, away)
	r := &rig{T: t, vendor: vendor, broker: b, p: p}
	got := r.handled()
	id := vendor.Say("kf1", "ann", "hello")
	runtest.Start(r, p.Run)
	if m := <-got; m.ID != id {
		t.Errorf("%+v", m)
	}
}
