package registry

import (
	"fmt"
	"io"
	"net/http"
)

// maxAnswer bounds an answer: schemas of megabytes are a mistake, or an attack.
const maxAnswer = 4 << 20

// bounded returns a copy of a client that reads at most maxAnswer of an answer.
func bounded(c *http.Client) *http.Client {
	if c == nil {
		c = &http.Client{}
	}
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	copied := *c
	copied.Transport = boundedTransport{next}
	return &copied
}

type boundedTransport struct{ next http.RoundTripper }

// RoundTrip makes the body of the answer end with an error where it is too large.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &boundedBody{answer.Body, maxAnswer}
	return answer, nil
}

// CloseIdleConnections is what http.Client asks its transport for.
func (t boundedTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
