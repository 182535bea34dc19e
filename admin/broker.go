package admin

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/transaction"
)

// recent is how old figures may be that several requests share.
const recent = 10 * time.Second

func (a *API) showBroker(ctx context.Context, _ *struct{}) (api.Broker, error) {
	c := a.driver.Capabilities()
	_, noLog := a.broker.Log()
	u, err := a.driver.Usage(ctx)
	return api.Broker{Driver: c.Driver, Environment: a.o.Environment, Version: a.o.Version,
		Capabilities: viewCapabilities(c), Log: noLog == nil,
		Tail: a.canTail(), Guards: a.o.Guards != nil, Actions: a.o.Actions != nil, Alerts: a.o.Watch != nil,
		WeCom: a.o.WeCom != nil,
		Usage: api.Usage{Memory: u.Memory, MemoryLimit: u.MemoryLimit, Disk: u.Disk, DiskFree: u.DiskFree,
			Connections: u.Connections}}, err
}

func viewCapabilities(c driver.Capabilities) api.Capabilities {
	v := api.Capabilities{LeaseScope: string(c.LeaseScope), MinLease: api.Duration(c.MinLease),
		DefaultLease:  api.Duration(c.DefaultLease),
		KeyedPriority: string(c.KeyedPriority), Parallel: string(c.Parallel), Dedup: string(c.Dedup),
		IDWindow: api.Duration(c.IDWindow), Bound: string(c.Bound),
		AtomicPublish: string(c.AtomicPublish), AtomicEmit: string(c.AtomicEmit), Counts: string(c.Counts),
		GetByID:        string(c.GetByID),
		PhysicalDelete: c.PhysicalDelete, History: string(c.History), Endings: c.Endings, Durability: c.Durability.String(),
		Levels:  []string{},
		MaxBody: c.MaxBody, SettleLag: api.Duration(c.SettleLag)}
	for _, l := range c.Levels {
		v.Levels = append(v.Levels, l.String())
	}
	return v
}

// showHealth gives a verdict on the whole system, with its reasons.
func (a *API) showHealth(ctx context.Context, _ *struct{}) (api.Health, error) {
	f := a.collector.Recent(ctx, recent)
	h := api.Health{Status: string(f.Health.Status), QueueSize: f.Ready + f.Inflight + f.Waiting,
		Workers: len(f.Processes), Errors: []string{},
		Reasons: []api.HealthReason{}, Uptime: api.Duration(time.Since(a.started).Round(time.Millisecond)),
		At:            jsontime.At(f.At),
		LastProcessed: jsontime.At(a.series.lastOut())}
	for _, r := range f.Health.Reasons {
		if r.Code == monitor.CodeUnreachable && f.Err != nil {
			r.Text = a.problem(ctx, f.Err).Detail // the error itself may name addresses
			r.About.Error = r.Text
		}
		h.Errors = append(h.Errors, r.String())
		h.Reasons = append(h.Reasons, viewReason(r))
	}
	for _, r := range a.notPulled(ctx) {
		if h.Status == string(monitor.Healthy) {
			h.Status = r.Status
		}
		h.Errors = append(h.Errors, r.Subject+": "+r.Text)
		h.Reasons = append(h.Reasons, r)
	}
	return h, nil
}

func viewReason(r monitor.Reason) api.HealthReason {
	v := r.About
	return api.HealthReason{Status: string(r.Status), Code: string(r.Code), Subject: r.Subject, Text: r.Text,
		Topic: v.Topic, Group: v.Group, Instance: v.Instance, Count: v.Count, Share: v.Share, Age: api.Duration(v.Age),
		Looks: v.Looks, PerSecond: v.PerSecond, Groups: v.Groups, Error: v.Error}
}

// diagnose looks at the backend itself: version, settings, what an acknowledged publish survives.
func (a *API) diagnose(ctx context.Context, _ *struct{}) (api.Findings, error) {
	all, err := a.driver.Diagnose(ctx)
	out := api.Findings{Findings: make([]api.Finding, len(all))}
	for i, f := range all {
		out.Findings[i] = api.Finding{Severity: string(f.Severity), Subject: f.Subject, Text: f.Text, Hint: f.Hint}
	}
	return out, err
}

type scaleGroup struct {
	input.GroupPath
	Min int `query:"min" default:"1" minimum:"1" maximum:"1000" doc:"The least instances"`
	Max int `query:"max" default:"10" minimum:"1" maximum:"1000" doc:"The most instances"`
}

// scale tells an autoscaler how many instances a group needs.
func (a *API) scale(ctx context.Context, in *scaleGroup) (api.Scale, error) {
	if in.Min > in.Max {
		return api.Scale{}, driver.NewError(driver.ErrInvalid, "min is larger than max", "make min the smaller one", nil)
	}
	s, err := a.stats(ctx, in.Topic)
	if err != nil {
		return api.Scale{}, err
	}
	i := slices.IndexFunc(s.Groups, func(g driver.GroupStats) bool { return g.Group == in.Group })
	if i < 0 {
		return api.Scale{}, driver.NewError(driver.ErrNotFound, "topic "+in.Topic+" has no such group",
			"see GET /api/v1/topics/"+in.Topic, nil)
	}
	members, err := cluster.Members(ctx, a.broker)
	if err != nil {
		return api.Scale{}, err
	}
	g := s.Groups[i]
	q := monitor.Queue{Topic: in.Topic, Group: in.Group, Paused: s.Paused || g.Paused, Consumers: g.Consumers,
		Ready: g.Ready, Inflight: g.Inflight, Waiting: g.Waiting, Dead: g.Dead, Oldest: g.Oldest}
	advice := cluster.Advise(q, cluster.ScalePolicy{Min: in.Min, Max: in.Max,
		Load: cluster.LoadOf(members, in.Topic, in.Group)})
	return api.Scale{Value: advice.Instances, Current: advice.Current, Verdict: string(advice.Verdict),
		Depth:  g.Ready + g.Inflight + g.Waiting,
		Oldest: api.Duration(g.Oldest), Reasons: list(advice.Reasons)}, nil
}

type resultPath struct {
	input.GroupPath
	ID string `path:"id" maxLength:"128"`
}

// showResult tells how far a message is in a group, and what its handler returned.
func (a *API) showResult(ctx context.Context, in *resultPath) (api.Result, error) {
	s, err := result.Get(ctx, a.broker, in.Topic, in.Group, in.ID)
	if err != nil {
		return api.Result{}, err
	}
	v := api.Result{Topic: in.Topic, Group: in.Group, ID: in.ID, State: string(s.State), Attempt: s.Attempt,
		Error: s.Error, ContentType: s.ContentType, At: jsontime.At(s.At)}
	if p := s.Progress; p != (result.Step{}) {
		v.Progress = &api.Step{Done: p.Done, Total: p.Total, Note: p.Note}
	}
	switch m := a.maskOf(in.Topic); {
	case s.Body == nil:
	case !auth.From(ctx).May(auth.Payload, in.Topic):
		v.Hidden = true
	case utf8.Valid(s.Body):
		text := string(s.Body)
		if len(m.Fields) > 0 {
			text = m.text(text)
		}
		v.Body = &text
	case len(m.Fields) > 0:
		v.Hidden = true
	default:
		v.BodyBase64 = s.Body
	}
	return v, nil
}

// listTransactions lists the transactions that nobody has finished. They name several topics, and take a grant on all.
func (a *API) listTransactions(ctx context.Context, in *input.Paging) (api.TransactionPage, error) {
	p, err := transaction.List(ctx, a.broker, transaction.Query{Cursor: in.Cursor, Limit: in.Limit})
	out := api.TransactionPage{Transactions: make([]api.Transaction, len(p.Transactions)), Next: p.Next}
	for i, t := range p.Transactions {
		out.Transactions[i] = viewTransaction(t)
	}
	return out, err
}

func viewTransaction(t transaction.Transaction) api.Transaction {
	v := api.Transaction{ID: t.ID, State: string(t.State), By: t.By, Done: t.Done, Kind: t.Kind, Subject: t.Subject,
		Count:   t.Count,
		Written: jsontime.At(t.Written), TTL: api.Duration(t.TTL), Halves: make([]api.Half, len(t.Halves))}
	for i, h := range t.Halves {
		v.Halves[i] = api.Half{Topic: h.Topic, ID: h.ID, Delay: api.Duration(h.Delay)}
	}
	return v
}

type transactionPath struct {
	ID string `path:"id" maxLength:"128"`
}

func (a *API) commitTransaction(ctx context.Context, in *transactionPath, note *auth.Action) (api.Transaction, error) {
	note.Detail = in.ID
	t, err := transaction.Commit(ctx, a.broker, in.ID)
	return viewTransaction(t), err
}

func (a *API) rollBackTransaction(ctx context.Context, in *transactionPath, note *auth.Action) (api.Transaction,
	error) {
	note.Detail = in.ID
	t, err := transaction.Rollback(ctx, a.broker, in.ID)
	return viewTransaction(t), err
}
