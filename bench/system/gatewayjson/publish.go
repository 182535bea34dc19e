package gatewayjson

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

const path = "/topics/" + topic + "/messages"

var errNoAsync = errors.New("a request is answered")

type publisher struct {
	s      *session
	buffer bytes.Buffer
}

func (p *publisher) KeepsBodies() bool { return false }

func (p *publisher) Publish(ctx context.Context, m system.Message) error {
	return p.s.post(ctx, path, "application/octet-stream", bytes.NewReader(m.Body))
}

func (p *publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	if p.s.frames {
		return p.publishFrame(ctx, ms)
	}
	p.buffer.Reset()
	for i, m := range ms {
		p.buffer.WriteString(`,{"body_base64":"`)
		if i == 0 {
			p.buffer.Reset()
			p.buffer.WriteString(`[{"body_base64":"`)
		}
		p.buffer.Write(base64.StdEncoding.AppendEncode(p.buffer.AvailableBuffer(), m.Body))
		p.buffer.WriteString(`"}`)
	}
	p.buffer.WriteByte(']')
	return p.s.post(ctx, path, "application/vnd.ferry.batch+json", bytes.NewReader(p.buffer.Bytes()))
}

func (p *publisher) publishFrame(ctx context.Context, ms []system.Message) error {
	q := frame.Publish{Messages: make([]*driver.Message, len(ms))}
	for i, m := range ms {
		q.Messages[i] = &driver.Message{Body: m.Body}
	}
	data, err := frame.Marshal(&q)
	if err != nil {
		return err
	}
	return p.s.post(ctx, path, frame.ContentType, bytes.NewReader(data))
}

func (p *publisher) PublishAsync(context.Context, system.Message) error { return errNoAsync }
func (p *publisher) Flush(context.Context) error                        { return nil }
