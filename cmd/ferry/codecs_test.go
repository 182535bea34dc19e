package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"testing"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	adminapi "github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/avro"
	"github.com/ferrymq/ferry/codec/cbor"
	"github.com/ferrymq/ferry/codec/registry"
)

// TestServeDecodes: a server shows bodies of other formats as JSON; those of Avro, if it is told of the registry.
func TestServeDecodes(t *testing.T) {
	t.Parallel()
	schemas := srfake.New()
	t.Cleanup(schemas.Close)
	r, err := registry.New(registry.Options{URLs: []string{schemas.URL()}, Register: true})
	if err != nil {
		t.Fatal(err)
	}
	type order struct {
		ID int64 `avro:"id" json:"id"`
	}
	records, err := avro.New(r, avro.Infer[order]("shop"))
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, []string{"FERRY_SCHEMA_REGISTRY=" + schemas.URL()}, "dev", "--no-demo", "--listen", "127.0.0.1:0")
	token := regexp.MustCompile(`ferry_\w+`).FindString(s.out)
	for _, c := range []codec.Codec{cbor.Codec, records} {
		body, err := c.Marshal(t.Context(), "orders", order{7})
		if err != nil {
			t.Fatal(err)
		}
		var published adminapi.Published
		s.ask(token, http.MethodPost, "/topics/orders/messages", adminapi.NewMessage{BodyBase64: body,
			ContentType: c.ContentType()}, &published)
		var got adminapi.Views
		s.ask(token, http.MethodGet, "/topics/orders/messages/"+published.ID, nil, &got)
		if len(got.Messages) != 1 || got.Messages[0].Decoded != `{"id":7}` {
			t.Errorf("%s: %+v", c.ContentType(), got.Messages)
		}
	}
}

// ask asks the admin API.
func (s *served) ask(token, method, path string, body, answer any) {
	s.t.Helper()
	sent, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+adminapi.Base+path, bytes.NewReader(sent))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	res, err := browser(s.t).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(answer); err != nil || res.StatusCode != http.StatusOK &&
		res.StatusCode != http.StatusCreated {
		s.t.Fatalf("%s %s: %d, %v", method, path, res.StatusCode, err)
	}
}
