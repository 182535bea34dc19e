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

// brokenLetters is how many are mended one by one.
const brokenLetters = 8

// refundLetters is how many are changed by a filter.
const refundLetters = 6

// fillLetters makes dead letters: many of one kind, some to be mended, and hostile ones.
func (s *ferryServer) fillLetters(corpus []string) {
	s.Helper()
	s.api("PUT", "/topics/failed/groups/default", map[string]any{})
	var failed bytes.Buffer
	for i := range failedLetters {
		_, _ = fmt.Fprintf(&failed, `{"id":"failed-%d","json":{"id":%d}}`+"\n", i, i)
	}
	s.gateway("/topics/failed/messages", "application/x-ndjson", failed.Bytes(), nil)
	s.die("failed", failedLetters, func(n int) string { return fmt.Sprintf("timeout to billing after %d ms", n) })
	s.die("hostile", len(corpus), func(n int) string { return corpus[n] })
	s.fillBroken()
	s.fillMended("refunds", refundLetters, "no such account") // those that are edited, moved, removed and exported at once
	s.fillMended("slowly", brokenLetters, "come back later")  // those that are retried one in a second
}

// fillMillion publishes a million messages.
func (s *ferryServer) fillMillion() {
	s.Helper()
	s.api("PUT", "/topics/million/groups/default", map[string]any{})
	const million, part = 1_000_000, 5_000
	for from := 0; from < million; from += part {
		var lines bytes.Buffer
		for i := from; i < from+part; i++ {
			_, _ = fmt.Fprintf(&lines, `{"id":"million-%d","json":{"id":%d}}`+"\n", i, i)
		}
		s.gateway("/topics/million/messages", "application/x-ndjson", lines.Bytes(), nil)
	}
}

// fillBroken makes dead letters to be mended.
func (s *ferryServer) fillBroken() {
	s.Helper()
	s.fillMended("broken", brokenLetters, "no such user")
}

func (s *ferryServer) fillMended(topic string, count int, problem string) {
	s.Helper()
	s.api("PUT", "/topics/"+topic+"/groups/default", map[string]any{})
	var lines bytes.Buffer
	for i := range count {
		_, _ = fmt.Fprintf(&lines, `{"id":"%s-%d","json":{"id":%d,"user":"nobody"},"headers":{"tenant":"a"}}`+"\n",
			topic, i, i)
	}
	s.gateway("/topics/"+topic+"/messages", "application/x-ndjson", lines.Bytes(), nil)
	s.die(topic, count, func(int) string { return problem })
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
