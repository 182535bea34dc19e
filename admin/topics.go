package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

type listTopics struct {
	input.Paging
	Prefix   string `query:"prefix" doc:"Of their names"`
	Internal bool   `query:"internal" doc:"Also those that Ferry itself uses"`
}

// listTopics lists the topics that whoever asks may see, with their counts.
func (a *API) listTopics(ctx context.Context, in *listTopics) (api.TopicPage, error) {
	all, err := a.topics(ctx)
	if err != nil {
		return api.TopicPage{}, err
	}
	who := auth.From(ctx)
	all = slices.DeleteFunc(all, func(t driver.TopicInfo) bool {
		return t.Topic <= in.Cursor || !strings.HasPrefix(t.Topic, in.Prefix) || driver.Reserved(t.Topic) && !in.Internal ||
			!who.May(auth.View, t.Topic)
	})
	page := api.TopicPage{Topics: []api.Topic{}}
	for i, info := range all {
		if i == in.Limit {
			page.Next = all[i-1].Topic
			break
		}
		s, err := a.stats(ctx, info.Topic)
		if isGone(err) {
			continue
		}
		if err != nil {
			return page, err
		}
		page.Topics = append(page.Topics, viewTopic(info, s))
	}
	return page, nil
}

func (a *API) showTopic(ctx context.Context, in *input.TopicPath) (api.Topic, error) {
	s, err := a.stats(ctx, in.Topic)
	if err != nil {
		return api.Topic{}, err
	}
	info, err := a.info(ctx, in.Topic)
	return viewTopic(info, s), err
}

// info returns the settings of a topic.
func (a *API) info(ctx context.Context, topic string) (driver.TopicInfo, error) {
	found, err := a.settings(ctx, topic)
	switch {
	case err != nil:
		return driver.TopicInfo{}, err
	case len(found) == 0:
		return driver.TopicInfo{}, driver.NewError(driver.ErrNotFound, "topic "+topic+" does not exist",
			"see GET /api/v1/topics", nil)
	}
	return found[0], nil
}

type putTopic struct {
	input.TopicPath
	Body api.Config
}

// putTopic makes a topic, or changes the configuration of one.
func (a *API) putTopic(ctx context.Context, in *putTopic, note *auth.Action) (api.Topic, error) {
	c := configOf(in.Body)
	note.Topic, note.Detail = in.Topic, c.String()
	if err := driver.CheckTopic(in.Topic); err != nil {
		return api.Topic{}, err
	}
	err := a.driver.AlterTopic(ctx, in.Topic, c)
	if isGone(err) {
		err = a.driver.EnsureTopic(ctx, in.Topic, c)
	}
	if err != nil {
		return api.Topic{}, err
	}
	return a.showTopic(ctx, &in.TopicPath)
}

func (a *API) deleteTopic(ctx context.Context, in *input.TopicPath, note *auth.Action) error {
	note.Topic = in.Topic
	return a.driver.DeleteTopic(ctx, in.Topic)
}

func (a *API) pauseTopic(ctx context.Context, in *input.TopicPath, note *auth.Action) error {
	note.Topic = in.Topic
	return a.driver.Pause(ctx, in.Topic, "", true)
}

func (a *API) resumeTopic(ctx context.Context, in *input.TopicPath, note *auth.Action) error {
	note.Topic = in.Topic
	return a.driver.Pause(ctx, in.Topic, "", false)
}

func (a *API) balance(ctx context.Context, in *input.TopicPath) (api.Balance, error) {
	s, err := a.stats(ctx, in.Topic)
	if err != nil {
		return api.Balance{}, err
	}
	broken := s.Unbalanced()
	return api.Balance{Topic: in.Topic, Balanced: len(broken) == 0, Problems: list(broken)}, nil
}

func (a *API) showGroup(ctx context.Context, in *input.GroupPath) (api.Group, error) {
	s, err := a.stats(ctx, in.Topic)
	if err != nil {
		return api.Group{}, err
	}
	i := slices.IndexFunc(s.Groups, func(g driver.GroupStats) bool { return g.Group == in.Group })
	if i < 0 {
		return api.Group{}, driver.NewError(driver.ErrNotFound, "topic "+in.Topic+" has no such group",
			"see GET /api/v1/topics/"+in.Topic, nil)
	}
	return viewGroup(s, s.Groups[i]), nil
}

type putGroup struct {
	input.GroupPath
	Body api.NewGroup
}

func (a *API) putGroup(ctx context.Context, in *putGroup, note *auth.Action) (api.Group, error) {
	note.Topic, note.Group = in.Topic, in.Group
	o := driver.GroupOptions{}
	if in.Body.Order == driver.Relaxed.String() {
		o.Order = driver.Relaxed
	}
	switch {
	case in.Body.Since != nil && in.Body.From != "":
		return api.Group{}, driver.NewError(driver.ErrInvalid, "both from and since are given", "use one of them", nil)
	case in.Body.Since != nil:
		o.Start = ferry.Since(in.Body.Since.Time)
	case in.Body.From == "begin":
		o.Start = ferry.Beginning()
	}
	if err := driver.CheckTopic(in.Topic); err != nil {
		return api.Group{}, err
	}
	if err := a.driver.EnsureGroup(ctx, in.Topic, in.Group, o); err != nil {
		return api.Group{}, err
	}
	return a.showGroup(ctx, &in.GroupPath)
}

func (a *API) deleteGroup(ctx context.Context, in *input.GroupPath, note *auth.Action) error {
	note.Topic, note.Group = in.Topic, in.Group
	return a.driver.DeleteGroup(ctx, in.Topic, in.Group)
}

func (a *API) pauseGroup(ctx context.Context, in *input.GroupPath, note *auth.Action) error {
	note.Topic, note.Group = in.Topic, in.Group
	return a.driver.Pause(ctx, in.Topic, in.Group, true)
}

func (a *API) resumeGroup(ctx context.Context, in *input.GroupPath, note *auth.Action) error {
	note.Topic, note.Group = in.Topic, in.Group
	return a.driver.Pause(ctx, in.Topic, in.Group, false)
}

func (a *API) partitions(ctx context.Context, in *input.TopicPath) (api.Partitions, error) {
	log, err := a.broker.Log()
	if err != nil {
		return api.Partitions{}, err
	}
	all, err := log.Partitions(ctx, in.Topic)
	out := api.Partitions{Partitions: make([]api.Partition, len(all))}
	for i, p := range all {
		out.Partitions[i] = viewPartition(p)
	}
	return out, err
}

func viewPartition(p driver.Partition) api.Partition {
	v := api.Partition{Partition: p.Partition, Entries: p.Entries, Memory: p.Memory, First: refText(p.First),
		Last: refText(p.Last), Groups: []api.PartitionGroup{}}
	for _, g := range p.Groups {
		group := api.PartitionGroup{Group: g.Group, Owner: g.Owner, Lag: g.Lag, Pending: g.Pending,
			Consumers: []api.PartitionConsumer{}}
		for _, c := range g.Consumers {
			group.Consumers = append(group.Consumers, api.PartitionConsumer{Instance: c.Instance, Pending: c.Pending,
				Idle: api.Duration(c.Idle)})
		}
		v.Groups = append(v.Groups, group)
	}
	return v
}

type listPending struct {
	input.GroupPath
	input.Paging
	Instance string `query:"instance" doc:"Only what this consumer has"`
}

func (a *API) listPending(ctx context.Context, in *listPending) (api.PendingPage, error) {
	log, err := a.broker.Log()
	if err != nil {
		return api.PendingPage{}, err
	}
	p, err := log.Pending(ctx, driver.PendingQuery{Topic: in.Topic, Group: in.Group, Instance: in.Instance,
		Cursor: in.Cursor, Limit: in.Limit})
	out := api.PendingPage{Pending: []api.Pending{}, Next: p.Next}
	for _, e := range p.Entries {
		out.Pending = append(out.Pending, api.Pending{Ref: e.Ref.String(), ID: e.ID, State: string(e.State),
			Instance: e.Instance,
			Idle:     api.Duration(e.Idle), Deliveries: e.Deliveries})
	}
	return out, err
}

func (a *API) showRetention(ctx context.Context, in *input.TopicPath) (api.Retention, error) {
	log, err := a.broker.Log()
	if err != nil {
		return api.Retention{}, err
	}
	r, err := log.Retention(ctx, in.Topic)
	return api.Retention{Age: api.Duration(r.Age), Entries: r.Entries, Bytes: r.Bytes, DropUnsettled: r.DropUnsettled}, err
}

type putRetention struct {
	input.TopicPath
	Body api.Retention
}

func (a *API) putRetention(ctx context.Context, in *putRetention, note *auth.Action) error {
	note.Topic = in.Topic
	log, err := a.broker.Log()
	if err != nil {
		return err
	}
	b := in.Body
	return log.Retain(ctx, in.Topic, driver.Retention{Age: time.Duration(b.Age), Entries: b.Entries, Bytes: b.Bytes,
		DropUnsettled: b.DropUnsettled})
}

// trim applies the retention at once.
func (a *API) trim(ctx context.Context, in *input.TopicPath, note *auth.Action) (api.Trimmed, error) {
	note.Topic = in.Topic
	log, err := a.broker.Log()
	if err != nil {
		return api.Trimmed{}, err
	}
	r, err := log.Trim(ctx, in.Topic)
	note.Count = int64(r.Removed)
	return api.Trimmed{Removed: r.Removed, Dropped: r.Dropped, Waits: r.Waits}, err
}

type replayLog struct {
	input.GroupPath
	Body api.ReplayLog
}

// replayLog makes what a topic keeps ready again for a group.
func (a *API) replayLog(ctx context.Context, in *replayLog, note *auth.Action) (api.ReplayedLog, error) {
	note.Topic, note.Group = in.Topic, in.Group
	log, err := a.broker.Log()
	if err != nil {
		return api.ReplayedLog{}, err
	}
	o := driver.ReplayOptions{DryRun: in.Body.DryRun}
	if o.From, err = refPosition(in.Body.From); err != nil {
		return api.ReplayedLog{}, err
	}
	if o.To, err = refPosition(in.Body.To); err != nil {
		return api.ReplayedLog{}, err
	}
	r, err := log.Replay(ctx, in.Topic, in.Group, o)
	note.Count = int64(r.Replayed)
	return api.ReplayedLog{Replayed: r.Replayed, Skipped: r.Skipped}, err
}

// refPosition is the position of a ref; without one the zero Position.
func refPosition(text string) (driver.Position, error) {
	if text == "" {
		return driver.Position{}, nil
	}
	ref, err := driver.ParseRef(text)
	return driver.Position{From: driver.FromRef, Ref: ref}, err
}
