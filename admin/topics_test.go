package admin

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// asked is a broker that notes which topics it was asked for.
type asked struct {
	driver.Driver
	names [][]string
}

func (a *asked) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	a.names = append(a.names, names)
	return a.Driver.Topics(ctx, names...)
}

// TestATopicIsReadAlone: who looks at one does not have the settings of all others read.
func TestATopicIsReadAlone(t *testing.T) {
	t.Parallel()
	inner, err := memory.New(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &asked{Driver: inner}
	b, err := ferry.New(d, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	a, err := New(Options{Broker: b})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ferry.Publish(t.Context(), b, topic, "x"); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	ctx := auth.With(t.Context(), boss)
	a.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, api.Base+"/topics/"+topic, nil))
	if want := [][]string{{topic}}; w.Code != http.StatusOK || !reflect.DeepEqual(d.names, want) {
		t.Errorf("status %d, asked for %q, want %q", w.Code, d.names, want)
	}
}
