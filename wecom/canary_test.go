package wecom_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
	"github.com/ferrymq/ferry/worker"
)

// Texts that must be found nowhere.
const (
	canaryAccess   = "canary-access-token"
	canaryCallback = "canary-callback-token"
	canaryText     = "canary-text-of-a-customer"
	canaryReply    = "canary-reply"
)

// printed collects what a program may print: log lines, errors, values.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(line)
}

// add prints values in every way that is common, and in one that is a mistake.
func (p *printed) add(values ...any) {
	for _, v := range values {
		encoded, err := json.Marshal(v)
		_, _ = fmt.Fprintf(p, "%v %+v %#v %s %q %d\n%s %v\n", v, v, v, v, v, v, encoded, err)
		slog.New(slog.NewTextHandler(p, nil)).Info("value", "it", v)
		slog.New(slog.NewJSONHandler(p, nil)).Info("value", "it", v)
	}
}

// forbid fails for every text that was printed.
func (p *printed) forbid(t *testing.T, texts ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text.Len() < 1000 {
		t.Errorf("hardly anything was printed:\n%s", p.text.String())
	}
	for _, text := range texts {
		if before, after, found := strings.Cut(p.text.String(), text); found {
			t.Errorf("%q was printed: %s >here< %s", text, before[max(0, len(before)-200):], after[:min(len(after), 100)])
		}
	}
}

// Whatever goes wrong, neither a secret nor a text of a customer is in a log line, in an error or in anything that
// prints.
func TestNothingSecretIsPrinted(t *testing.T) {
	t.Parallel()
	out := &printed{}
	logger := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
	r := newCanaryRig(t, logger)
	config := r.vendor.Config()
	out.add(config, &config, config.Keys, r.p, r.p.Client(), keys(t, config.Corp, config.Keys...))

	r.vendor.Break("gettoken", 1, http.StatusOK, `{"errcode":0,"access_token":"`+canaryAccess+`","expires_in":7200}`)
	echo := fmt.Sprintf(`{"errcode":40058,"errmsg":"%s %s"}`, canaryAccess, config.Secret)
	r.vendor.Break("kf/service_state/get", 1, http.StatusOK, echo)
	_, _, err := r.p.Client().State(t.Context(), "kf1", "ann")
	out.add(err)
	r.badCallbacks(out)
	r.badPulls(out)
	r.badHandler(out, logger)
	accounts, err := r.p.Accounts(t.Context())
	out.add(err, accounts, r.p.Stats())
	r.vendor.Close()
	out.add(r.p.PullAccount(t.Context(), "kf1", time.Now()), r.p.Stats())
	out.forbid(t, string(config.Secret), string(config.Keys[0].Token), string(config.Keys[0].AESKey), canaryAccess,
		canaryCallback, canaryText, canaryReply)
}

// newCanaryRig is a rig that logs all it can.
func newCanaryRig(t *testing.T, logger *slog.Logger) *rig {
	t.Helper()
	d, err := memory.New(t.Context(), memory.Options{MaxBody: maxBody})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, vendor: wecomtest.Start(wecomtest.Options{Page: 1, Tokenless: 1000}), driver: faulty.New(d)}
	t.Cleanup(r.vendor.Close)
	r.broker, err = ferry.New(r.driver, ferry.Options{Logger: logger})
	r.ok(err)
	t.Cleanup(func() { _ = r.broker.Close(context.Background()) })
	r.p = r.pipeline(wecom.Options{})
	r.url = r.serve(r.p.Callback())
	return r
}

// badCallbacks sends what is refused, and what cannot be stored.
func (r *rig) badCallbacks(out *printed) {
	notice := wecom.Notice{Event: "kf_msg_or_event", Account: "kf1", Token: canaryCallback}
	good := r.vendor.Notice(notice)
	forged, malformed, large := good, good, good
	forged.Signature = "0"
	malformed.Body = canaryText
	large.Body = strings.Repeat(canaryText, 10_000)
	notice.Account = "no account"
	for _, c := range []wecomtest.Callback{forged, malformed, large, r.vendor.Notice(notice), good} {
		status, err := c.Send(r.Context(), r.url)
		out.add(status, err)
	}
	r.driver.Set(faulty.Publish, faulty.Fail(errAway))
	status, err := good.Send(r.Context(), r.url)
	out.add(status, err)
	r.driver.Set(faulty.Publish, nil)
}

// badPulls has pulls fail in every way.
func (r *rig) badPulls(out *printed) {
	pull := func() {
		err := r.p.PullAccount(r.Context(), "kf1", time.Now())
		out.add(err, r.p.Stats())
	}
	r.vendor.Say("kf1", "ann", canaryText)
	r.vendor.Say("kf1", "ann", strings.Repeat(canaryText, maxBody))
	r.vendor.Add("kf1", "ann", json.RawMessage(`{"msgid":"`+canaryText+` ","msgtype":"text","text":"`+canaryText+`"}`))
	for _, code := range []int{wecom.CodeBusy, wecom.CodeLimited, wecom.CodeWrongAccount, wecom.CodeExpiredToken, 12345} {
		r.vendor.Fail("kf/sync_msg", 2, code)
		pull()
	}
	r.vendor.Break("kf/sync_msg", 1, http.StatusBadGateway, canaryText)
	pull()
	r.vendor.Break("kf/sync_msg", 1, http.StatusOK, `{"errcode":"`+canaryText)
	pull()
	r.driver.Set(faulty.Publish, faulty.Fail(errAway))
	pull()
	r.driver.Set(faulty.Publish, nil)
	pull()
	r.vendor.ForgetCursors()
	pull()
	r.vendor.Fail("kf/send_msg", 1, wecom.CodeState)
	_, err := r.p.Client().Send(r.Context(), "kf1", "ann", wecom.Reply{Text: &wecom.Text{Content: canaryReply}})
	out.add(err)
}

// badHandler has a worker handle what was published, and fail.
func (r *rig) badHandler(out *printed, logger *slog.Logger) {
	layers, err := r.p.Protection(guard.NewMemory(guard.MemoryOptions{}),
		func(_ context.Context, e guard.Event) { out.add(e) })
	r.ok(err)
	w := worker.New(r.broker, worker.Options{Logger: logger})
	failed := make(chan struct{}, 10)
	r.p.Handle(w, layers, func(context.Context, *ferry.Msg[wecom.Message]) error {
		failed <- struct{}{}
		return worker.Fatal(errors.New("no"))
	})
	ctx, end := context.WithCancel(r.Context())
	var running sync.WaitGroup
	running.Go(func() { out.add(w.Run(ctx)) })
	<-failed
	r.waitForDead(3)
	end()
	running.Wait()
}
