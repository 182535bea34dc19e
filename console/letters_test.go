package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// failedLetters is how many dead letters are replayed at once.
const failedLetters = 1000

// fillLetters makes dead letters: many of one kind, some to be mended, and hostile ones.
func (s *ferryServer) fillLetters(corpus []string) {
	s.Helper()
	for _, topic := range []string{"failed", "broken"} {
		s.api("PUT", "/topics/"+topic+"/groups/default", map[string]any{})
	}
	var failed, broken bytes.Buffer
	for i := range failedLetters {
		_, _ = fmt.Fprintf(&failed, `{"id":"failed-%d","json":{"id":%d}}`+"\n", i, i)
	}
	for i := range 3 {
		_, _ = fmt.Fprintf(&broken, `{"id":"broken-%d","json":{"id":%d,"user":"nobody"},"headers":{"tenant":"a"}}`+"\n", i, i)
	}
	s.gateway("/topics/failed/messages", "application/x-ndjson", failed.Bytes(), nil)
	s.gateway("/topics/broken/messages", "application/x-ndjson", broken.Bytes(), nil)
	s.die("failed", failedLetters, func(n int) string { return fmt.Sprintf("timeout to billing after %d ms", n) })
	s.die("broken", 3, func(int) string { return "no such user" })
	s.die("hostile", len(corpus), func(n int) string { return corpus[n] })
}

// die receives messages of a topic and gives them up.
func (s *ferryServer) die(topic string, count int, problem func(n int) string) {
	s.Helper()
	for dead := 0; dead < count; {
		var got struct {
			Messages []struct {
				Lease string `json:"lease"`
			} `json:"messages"`
		}
		s.gateway("/topics/"+topic+"/groups/default/receive", "application/json", []byte(`{"max":1000,"wait":"5s"}`), &got)
		settle := make([]map[string]string, len(got.Messages))
		for i, m := range got.Messages {
			settle[i] = map[string]string{"lease": m.Lease, "outcome": "dead", "error": problem(dead + i)}
		}
		body, err := json.Marshal(map[string]any{"settle": settle})
		if err != nil {
			s.Fatal(err)
		}
		s.gateway("/settle", "application/json", body, nil)
		dead += len(settle)
	}
}

// gateway asks the gateway, and reads its answer into what is given.
func (s *ferryServer) gateway(path, contentType string, body []byte, into any) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1"+path, bytes.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", contentType)
	r.Close = true // no connection is left when the test ends
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusBadRequest {
		var text bytes.Buffer
		_, _ = text.ReadFrom(answer.Body)
		s.Fatalf("%s: %s %s", path, answer.Status, &text)
	}
	if into == nil {
		return
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		s.Fatal(err)
	}
}
