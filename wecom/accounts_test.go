package wecom_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// Accounts are known by their configuration, by a callback, or by a pull, whether or not that succeeded.
func TestAccounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Tokenless: 10}, wecom.Options{})
	config := r.vendor.Config()
	config.Accounts = []string{"configured"}
	p, err := wecom.New(r.broker, config, wecom.Options{})
	r.ok(err)
	defer p.Close()
	r.ok(r.p.PullNow(t.Context(), "pulled", "")) // by another process
	_, err = r.vendor.Callback("called").Send(t.Context(), r.url)
	r.ok(err)
	all, err := r.p.Accounts(t.Context())
	r.ok(err)
	if len(all) != 2 || all[0].Account != "called" || all[0].LastCallback.IsZero() || !all[0].Pulled.IsZero() ||
		all[1].Account != "pulled" || all[1].Pulled.IsZero() || all[1].Problem != nil {
		t.Errorf("%+v", all)
	}
	all, err = p.Accounts(t.Context())
	r.ok(err)
	if len(all) != 2 || all[0].Account != "configured" || all[1].Account != "pulled" || !all[1].LastCallback.IsZero() {
		t.Errorf("%+v", all)
	}
}

// An account that nobody pulls is overdue after five polls, and one that was never pulled at once.
func TestOverdueAccounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := wecom.Config{Corp: "corp", Secret: "secret", Accounts: []string{"never"}, Poll: 20 * time.Second}
		p, err := wecom.New(newBroker(t), config, wecom.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.SetCursor(t.Context(), "pulled", "c1"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{1, 2} {
			overdue, err := p.Overdue(t.Context())
			if err != nil || len(overdue) != want || overdue[0].Account != "never" || !overdue[0].Pulled.IsZero() {
				t.Errorf("%+v, %v; want %d", overdue, err, want)
			}
			time.Sleep(101 * time.Second)
		}
	})
}
