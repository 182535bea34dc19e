package ferrytest_test

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/encrypt"
	"github.com/ferrymq/ferry/ferrytest"
)

// TestPublishedWithFilters: a test sees what its program published, not what the broker stores.
func TestPublishedWithFilters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key := encrypt.Key{ID: "1", Secret: bytes.Repeat([]byte("1"), encrypt.SecretSize)}
		f, err := encrypt.New(encrypt.Options{Keys: encrypt.KeyRing{Active: key}})
		if err != nil {
			t.Fatal(err)
		}
		k := ferrytest.New(t, ferry.Options{Filters: []codec.Filter{f}})
		if _, err := ferry.Publish(t.Context(), k.Broker, "orders", Order{ID: 1}); err != nil {
			t.Fatal(err)
		}
		if m := k.ExpectPublished("orders", 1)[0]; string(m.Body) != `{"id":1}` || m.Headers != nil {
			t.Errorf("published: %q, %v", m.Body, m.Headers)
		}
	})
}
