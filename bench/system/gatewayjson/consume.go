package gatewayjson

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/ferrymq/ferry/bench/system"
)

// mostSettled is how many messages are settled in one request.
const mostSettled = 100

// Consume reads one stream, and settles what was handled when as many have gathered, or nothing more has come.
func (s *session) Consume(ctx context.Context, _ system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	ctx, cancel := context.WithCancel(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/topics/"+topic+"/groups/default/stream?max=1000", nil)
	if err != nil {
		cancel()
		return nil, err
	}
	res, err := s.client.Do(r)
	if err != nil {
		cancel()
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		cancel()
		return nil, fmt.Errorf("the stream answered with status %d", res.StatusCode)
	}
	c := &consumer{s: s, ctx: ctx, cancel: cancel, handler: h}
	c.running.Go(func() {
		defer func() { _ = res.Body.Close() }()
		c.read(bufio.NewReaderSize(res.Body, 64<<10))
	})
	return c, nil
}

type consumer struct {
	s       *session
	ctx     context.Context
	cancel  context.CancelFunc
	handler system.Handler
	running sync.WaitGroup
	err     error
}

// read handles messages until the stream ends.
func (c *consumer) read(lines *bufio.Reader) {
	var leases []string
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // it was cancelled; the scenario finds what is missing
		}
		if len(line) > 1 {
			lease, err := c.handle(line)
			if err != nil {
				c.err = err
				return
			}
			leases = append(leases, lease)
		}
		if len(leases) == mostSettled || len(leases) > 0 && lines.Buffered() == 0 {
			if err := c.settle(leases); err != nil {
				c.err = err
				return
			}
			leases = leases[:0]
		}
	}
}

func (c *consumer) handle(line []byte) (lease string, err error) {
	var m struct {
		Lease      string  `json:"lease"`
		Body       *string `json:"body"`
		BodyBase64 []byte  `json:"body_base64"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return "", err
	}
	if m.Body != nil {
		m.BodyBase64 = []byte(*m.Body)
	}
	return m.Lease, c.handler(m.BodyBase64)
}

func (c *consumer) settle(leases []string) error {
	body := `{"settle":[{"lease":"` + strings.Join(leases, `"},{"lease":"`) + `"}]}`
	return c.s.post(context.WithoutCancel(c.ctx), "/settle", "application/json", strings.NewReader(body))
}

// Stop ends the stream. What was handled is settled: the scenario has waited for it.
func (c *consumer) Stop(context.Context) error {
	c.cancel()
	c.running.Wait()
	return c.err
}
