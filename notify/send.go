package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/uuid7"
)

// Send queues a message, and returns when the broker has it. What is wrong with it, or with one of its targets, is
// returned before anything is queued.
func (h *Hub) Send(ctx context.Context, m *Message) (*Handle, error) {
	handles, err := h.SendBatch(ctx, m)
	if len(handles) == 0 {
		return nil, err
	}
	return handles[0], err
}

// Check says what Send would refuse, and queues nothing.
func (h *Hub) Check(m *Message) error {
	_, err := h.plan(m)
	return err
}

// SendNow queues a message and waits until every target has ended. It needs a hub that runs, here or elsewhere.
func (h *Hub) SendNow(ctx context.Context, m *Message) (Receipt, error) {
	sent, err := h.Send(ctx, m)
	if err != nil {
		return Receipt{}, err
	}
	return sent.Wait(ctx)
}

// SendBatch queues messages together. Nothing is queued if one of them is wrong. If the broker refuses some targets the
// error says so, and those that are queued have receipts.
func (h *Hub) SendBatch(ctx context.Context, ms ...*Message) ([]*Handle, error) {
	plans := make([]*plan, len(ms))
	for i, m := range ms {
		p, err := h.plan(m)
		if err != nil {
			return nil, of(len(ms), i, err)
		}
		plans[i] = p
	}
	handles := make([]*Handle, len(plans))
	for i, p := range plans {
		h.shed(ctx, p)
		handles[i] = &Handle{ID: p.id, broker: h.broker}
	}
	first, err := h.records.create(ctx, plans)
	if err != nil {
		h.records.forget(ctx, first...)
		return nil, err
	}
	return handles, h.publish(ctx, plans, first)
}

// of names the message of a batch that is wrong.
func of(n, i int, err error) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("notification %d of %d: %w", i+1, n, err)
}

// plan is a message that was checked: what is to be queued, and its first receipts.
type plan struct {
	id       string
	at       time.Time
	window   time.Duration // of the digest that it asks for
	priority Priority
	jobs     []job
	receipts []TargetReceipt
}

// plan checks and renders a message.
func (h *Hub) plan(m *Message) (*plan, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	m = m.clone()
	if m.ID == "" {
		m.ID = uuid7.New(time.Now())
	}
	if err := h.render(m); err != nil {
		return nil, err
	}
	p := &plan{id: m.ID, at: m.At, priority: m.Priority}
	if m.Digest != nil {
		p.window = m.Digest.resolved().Window
	}
	for i, t := range m.Targets {
		for _, stage := range t.stages() {
			if err := h.checkTarget(m, stage); err != nil {
				return nil, fmt.Errorf("target %d of %d: %w", i+1, len(m.Targets), err)
			}
		}
		p.jobs = append(p.jobs, h.job(m, i))
		p.receipts = append(p.receipts, TargetReceipt{Channel: t.Channel, To: shown(t.To), Status: Queued,
			At: time.Now()})
	}
	return p, nil
}

func (h *Hub) job(m *Message, i int) job {
	j := job{ID: m.ID, Index: i, Chain: m.Targets[i].stages(), Title: m.Title, Body: m.Body, Format: m.Format,
		Priority: m.Priority, Data: m.Data, Metadata: m.Metadata, Attachments: m.Attachments, Retry: h.o.Retry}
	if m.Retry != nil {
		j.Retry = m.Retry.resolved()
	}
	if m.Digest != nil {
		d := m.Digest.resolved()
		j.Digest = &d
	}
	return j
}

// render makes title and body of a template, or of themselves where there are variables.
func (h *Hub) render(m *Message) error {
	t, err := h.template(m)
	if err != nil {
		return err
	}
	if t.format != "" {
		m.Format = t.format
	}
	if m.Format == "" {
		m.Format = Text
	}
	if m.Template != "" || len(m.Variables) > 0 {
		if m.Title, err = t.title.Execute(m.Variables); err != nil {
			return err
		}
		fill := t.body.Execute
		switch m.Format {
		case HTML:
			fill = t.body.ExecuteHTML
		case Markdown:
			fill = t.body.ExecuteMarkdown
		}
		if m.Body, err = fill(m.Variables); err != nil {
			return err
		}
	}
	return checkText(m.Title, m.Body)
}

// template is what a message is made of.
func (h *Hub) template(m *Message) (parsedTemplate, error) {
	if m.Template == "" {
		if len(m.Variables) == 0 {
			return parsedTemplate{}, nil
		}
		return MessageTemplate{Title: m.Title, Body: m.Body}.parse()
	}
	t, ok := h.offer.Load().templates[m.Template]
	if !ok {
		return t, invalid("name one of Options.Templates", "there is no template %q", m.Template)
	}
	return t, nil
}

// checkTarget refuses what a channel will never take.
func (h *Hub) checkTarget(m *Message, t Target) error {
	c, err := h.channel(t)
	if err != nil {
		return err
	}
	if c, ok := c.(checker); ok {
		if err := c.Check(t.To); err != nil {
			return err
		}
	}
	if a, ok := c.(attacher); len(m.Attachments) > 0 && !(ok && a.Attaches()) {
		return invalid("send a link instead", "channel %q takes no attachments", t.Channel)
	}
	_, _, err = c.Limits().shape(m.Body, m.Format)
	return err
}

// publish queues the jobs of messages. The first receipts of those that the broker refused are forgotten.
func (h *Hub) publish(ctx context.Context, plans []*plan, first []created) error {
	msgs, refs, err := h.messages(ctx, plans)
	if err != nil {
		h.records.forget(ctx, first...)
		return err
	}
	receipts, err := h.broker.PublishBatch(ctx, msgs)
	refused := map[reference]bool{}
	for i, r := range refs {
		refused[r] = len(receipts) == 0 || receipts[i].Err != nil && !errors.Is(receipts[i].Err, ferry.ErrUnknown)
	}
	for _, c := range first {
		if refused[c.reference] {
			h.records.forget(ctx, c)
		}
	}
	return err
}

// messages are the jobs as the broker gets them, and whose they are.
func (h *Hub) messages(ctx context.Context, plans []*plan) (msgs []*ferry.Message, refs []reference, err error) {
	for _, p := range plans {
		for i := range p.jobs {
			j := &p.jobs[i]
			m, err := ferry.NewMessage(ctx, h.broker, h.o.Topic, j, append(j.options(), ferry.At(p.at))...)
			if err != nil {
				return nil, nil, err
			}
			msgs, refs = append(msgs, m), append(refs, j.reference())
		}
	}
	return msgs, refs, nil
}
