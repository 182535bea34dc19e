package admin

import (
	"context"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/wecom"
)

// TestWeComAccounts: a viewer sees how far accounts are pulled and what is wrong; a server without customer service
// says so.
func TestWeComAccounts(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		path := api.Base + "/wecom/accounts"
		r.refused(http.StatusNotImplemented, "GET", path, nil)
		p, err := wecom.New(r.broker, wecom.Config{Corp: "corp", Secret: "hush", Accounts: []string{"kf1", "kf2"},
			// where nobody listens
			Vendor: "http://127.0.0.1:1", AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
			wecom.Options{})
		if err != nil {
			r.Fatal(err)
		}
		defer p.Close()
		r.api.o.WeCom = p
		if err := p.SetCursor(r.Context(), "kf1", "somewhere"); err != nil {
			r.Fatal(err)
		}
		if err := p.Pull(r.Context(), "kf2"); err != nil {
			r.Fatal(err)
		}
		ctx, end := context.WithTimeout(r.Context(), 10*time.Second)
		defer end()
		if err := p.Run(ctx); err != nil {
			r.Fatal(err)
		}
		viewer := r.as(auth.Grant{Role: auth.Viewer})
		var got api.WeComAccounts
		viewer.get(path, &got)
		if len(got.Accounts) != 2 || got.Lag.Pulls != 1 || got.TokenUntil != nil || got.LastCallback != nil {
			r.Fatalf("%+v", got)
		}
		pulled, failed := got.Accounts[0], got.Accounts[1]
		if pulled.Account != "kf1" || pulled.Pulled == nil || time.Duration(pulled.CursorAge) != 10*time.Second ||
			pulled.Problem != "" {
			r.Errorf("%+v", pulled)
		}
		if failed.Account != "kf2" || failed.Pulled != nil || failed.Problem == "" {
			r.Errorf("%+v", failed)
		}
		var h api.Health
		viewer.get(api.Base+"/health", &h)
		if n := len(h.Reasons); n == 0 || h.Status == "healthy" || h.Reasons[n-1].Code != codeNotPulled ||
			h.Reasons[n-1].Account != "kf2" || h.Errors[n-1] != "account kf2 of WeCom: it was never pulled" {
			t.Errorf("an account that was never pulled is no reason: %+v", h)
		}
		var b api.Broker
		if viewer.get(api.Base+"/broker", &b); !b.WeCom {
			r.Error("the broker's page does not tell that there is customer service")
		}
	})
}
