package gatewayjson

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/ferrymq/ferry/bench/system"
)

// credit is how many messages of the stream are not settled, and mostSettled how many are settled in one request.
const (
	credit      = 1000
	mostSettled = 100
)

// Consume reads one stream, and settles beside it what was handled.
func (s *session) Consume(ctx context.Context, _ system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	ctx, cancel := context.WithCancel(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/topics/%s/groups/default/stream?max=%d",
		s.base, topic, credit), nil)
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
	c := &consumer{s: s, ctx: ctx, cancel: cancel, handler: h, leases: make(chan string, credit)}
	c.running.Go(func() {
		defer func() { _ = res.Body.Close() }()
		c.errs[0] = c.read(bufio.NewReaderSize(res.Body, 64<<10))
	})
	c.running.Go(func() { c.errs[1] = c.settleAll() })
	return c, nil
}

type consumer struct {
	s       *session
	ctx     context.Context
	cancel  context.CancelFunc
	handler system.Handler
	leases  chan string // of what was handled
	running sync.WaitGroup
	errs    [2]error // of reading and of settling
}

// read handles messages until the stream ends.
func (c *consumer) read(lines *bufio.Reader) error {
	defer close(c.leases)
	var body []byte
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return nil // it was cancelled; the scenario finds what is missing
		}
		if len(line) == 1 {
			continue // the stream lives
		}
		body, err = base64.StdEncoding.AppendDecode(body[:0], field(line, `,"body_base64":"`))
		if err == nil {
			err = c.handler(body)
		}
		if err != nil {
			return err
		}
		c.leases <- string(field(line, `{"lease":"`))
	}
}

// field returns the text after a name. Neither of the two that are asked for has escapes, and a client that reads the
// whole line with encoding/json needs more processor time than the gateway: it would be measured instead.
func field(line []byte, name string) []byte {
	_, after, _ := bytes.Cut(line, []byte(name))
	value, _, _ := bytes.Cut(after, []byte(`"`))
	return value
}

// settleAll settles what was handled, as many at once as there are, while the next are read.
func (c *consumer) settleAll() error {
	for lease := range c.leases {
		leases := append(make([]string, 0, mostSettled), lease)
		for len(leases) < mostSettled && len(c.leases) > 0 {
			leases = append(leases, <-c.leases)
		}
		if err := c.settle(leases); err != nil {
			c.cancel() // the reader, too
			for range c.leases {
			}
			return err
		}
	}
	return nil
}

func (c *consumer) settle(leases []string) error {
	body := `{"settle":[{"lease":"` + strings.Join(leases, `"},{"lease":"`) + `"}]}`
	return c.s.post(context.WithoutCancel(c.ctx), "/settle", "application/json", strings.NewReader(body))
}

// Stop ends the stream. What was handled is settled: the scenario has waited for it.
func (c *consumer) Stop(context.Context) error {
	c.cancel()
	c.running.Wait()
	return errors.Join(c.errs[:]...)
}
