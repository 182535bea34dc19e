package prom_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/telemetry/prom"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

func TestWeCom(t *testing.T) {
	t.Parallel()
	vendor := wecomtest.Start(wecomtest.Options{})
	defer vendor.Close()
	b, err := memory.Open(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(t.Context())
	p, err := wecom.New(b, vendor.Config(), wecom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	callbacks := httptest.NewServer(p.Callback())
	defer callbacks.Close()
	if status, err := vendor.Callback("kf1").Send(t.Context(), callbacks.URL); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	if err := p.SetCursor(t.Context(), "kf1", ""); err != nil {
		t.Fatal(err)
	}
	m, err := prom.New(prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Watch(prom.Sources{WeCom: []*wecom.Pipeline{p}}); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`ferry_wecom_callbacks_total{broker="default",result="stored"} 1`,
		`ferry_wecom_callbacks_total{broker="default",result="refused"} 0`,
		`ferry_wecom_pulls_total{broker="default",result="done"} 0`,
		`ferry_wecom_messages_total{broker="default",result="duplicate"} 0`,
		`ferry_wecom_cursor_age_seconds{broker="default"} `,
		`ferry_wecom_token_expiry_timestamp_seconds{broker="default"} 0`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s is missing", want)
		}
	}
	if err := m.Watch(prom.Sources{WeCom: []*wecom.Pipeline{nil}}); err == nil {
		t.Error("a nil pipeline is watched")
	}
}
