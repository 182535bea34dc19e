package admin

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

// The classic routes, below /admin: short ones for scripts, which know a message by its id and a user by the key of
// their messages. They do what those below /api/v1 do.

type classicRetry struct {
	ID    string `path:"messageID" maxLength:"128"`
	Topic string `query:"topic" doc:"Where it died; searched for by default" maxLength:"128"`
	Group string `query:"group" doc:"In which group" maxLength:"128"`
}

// mostSearched is how many topics are asked for a message whose topic is not told.
const mostSearched = 200

// classicRetry replays one dead letter, wherever it is.
func (a *API) classicRetry(ctx context.Context, in *classicRetry, note *auth.Action) (api.Replayed, error) {
	note.Topic, note.Group, note.Detail = in.Topic, in.Group, in.ID
	topics, err := a.topicsFor(ctx, in.Topic)
	if err != nil {
		return api.Replayed{}, err
	}
	for _, topic := range topics {
		t := driver.Target{Topic: topic, Group: in.Group, ID: in.ID}
		if _, err := a.letters.Get(ctx, t); err != nil {
			continue
		}
		note.Topic = topic
		return a.replayOne(ctx, t, deadletter.ReplayOptions{}, note)
	}
	return api.Replayed{}, driver.NewError(driver.ErrNotFound, "no dead letter has this id", "see GET /admin/dlq/messages",
		nil)
}

// topicsFor returns the topics to look at for a letter: the one that is told, or those in which whoever asks may
// replay.
func (a *API) topicsFor(ctx context.Context, topic string) ([]string, error) {
	if topic != "" {
		return []string{topic}, may(ctx, auth.Operate, topic)
	}
	all, err := a.driver.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range all {
		if may(ctx, auth.Operate, t.Topic) == nil { // that a letter is in another topic is not told
			names = append(names, t.Topic)
		}
	}
	if len(names) > mostSearched {
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("there are %d topics, too many to search", len(names)),
			"name the topic: ?topic=", nil)
	}
	return names, nil
}

type classicBatch struct{ Body api.SelectLetters }

func (in *classicBatch) topics() []string { return []string{in.Body.Topic} }

// classicCount is how many letters an operation has dealt with so far.
type classicCount struct {
	Count     int64  `json:"count" doc:"Of letters so far"`
	Operation string `json:"operation" doc:"Which goes on if it has not ended: GET /api/v1/operations/{id}"`
	State     string `json:"state"`
}

// classicWait is how long a classic route waits for its operation.
const classicWait = 5 * time.Second

// classicBatch replays the dead letters that a filter selects, and answers with their number.
func (a *API) classicBatch(ctx context.Context, in *classicBatch, note *auth.Action) (classicCount, error) {
	l, err := a.lettersOf(ctx, in.Body, note)
	if err != nil {
		return classicCount{}, err
	}
	return a.await(ctx, kinds.Replay{Letters: l}.Request(), note)
}

// await submits an operation, and waits for it for a while.
func (a *API) await(ctx context.Context, r operation.Request, note *auth.Action) (classicCount, error) {
	r.By = auth.From(ctx).String()
	op, err := a.operations.Submit(ctx, r)
	if err != nil {
		return classicCount{}, err
	}
	note.Detail = op.ID
	wait, cancel := context.WithTimeout(ctx, classicWait)
	defer cancel()
	for !op.State.Ended() {
		next, err := a.operations.Next(wait, op)
		if err != nil {
			break // it goes on: whoever asked has its id
		}
		op = next
	}
	note.Count = op.Done
	return classicCount{Count: op.Done, Operation: op.ID, State: string(op.State)}, nil
}

type classicStats struct {
	Topic string `query:"topic" maxLength:"128"`
	By    string `query:"by" enum:"fingerprint,reason,topic,group,key,day" default:"reason"`
}

func (a *API) classicStats(ctx context.Context, in *classicStats) (api.Tally, error) {
	return a.tallyLetters(ctx, &tallyLetters{Letters: input.Letters{Topic: in.Topic}, By: in.By})
}

type classicMessages struct {
	input.Paging
	Topic string `query:"topic" maxLength:"128"`
	User  string `query:"user" doc:"Key of the messages" maxLength:"256"`
}

func (a *API) classicMessages(ctx context.Context, in *classicMessages) (api.MessagePage, error) {
	where := ""
	if in.User != "" {
		where = "key == " + strconv.Quote(in.User)
	}
	return a.listLetters(ctx, &listLetters{Letters: input.Letters{Topic: in.Topic, Where: where}, Paging: in.Paging})
}

type classicPurge struct {
	Topic  string `query:"topic" maxLength:"128"`
	MaxAge string `query:"max_age" doc:"Also those that died longer ago: 168h" maxLength:"32"`
}

// classicPurge deletes the dead letters whose time to live was over; with an age those that are older, whatever they
// died of.
func (a *API) classicPurge(ctx context.Context, in *classicPurge, note *auth.Action) (classicCount, error) {
	note.Topic = in.Topic
	l := kinds.Letters{Topic: in.Topic, State: driver.StateDead}
	if in.MaxAge == "" {
		l.Where = `reason == "expired"`
		note.Filter = l.Where
		return a.await(ctx, kinds.Remove{Letters: l}.Request(), note)
	}
	age, err := time.ParseDuration(in.MaxAge)
	if err != nil || age <= 0 {
		return classicCount{}, driver.NewError(driver.ErrInvalid, "max_age is no duration", "write it like 168h", nil)
	}
	note.Filter = "older than " + in.MaxAge
	return a.await(ctx, kinds.Expire{Letters: l, MaxAge: kinds.Duration(age)}.Request(), note)
}

func (a *API) classicStatus(ctx context.Context, in *input.UserPath) (api.LimitKey, error) {
	k := in.Key()
	return a.showKey(ctx, &k)
}

type classicChange struct {
	input.UserPath
	Body *api.Because
}

func (in *classicChange) reason() string {
	if in.Body == nil {
		return ""
	}
	return in.Body.Reason
}

func (a *API) classicUnblock(ctx context.Context, in *classicChange, note *auth.Action) error {
	return a.changeKey(ctx, in.Key(), note,
		func(d *guard.Admin) error { return d.Unblock(ctx, in.Name, in.User, because(in.reason())) })
}

func (a *API) classicWhitelist(ctx context.Context, in *classicChange, note *auth.Action) error {
	return a.changeKey(ctx, in.Key(), note,
		func(d *guard.Admin) error { return d.Whitelist(ctx, in.Name, in.User, because(in.reason())) })
}

func (a *API) classicUnwhitelist(ctx context.Context, in *input.UserPath, note *auth.Action) error {
	return a.changeKey(ctx, in.Key(), note,
		func(d *guard.Admin) error { return d.Unwhitelist(ctx, in.Name, in.User, because("")) })
}

// classicBlock keeps a user out for good.
func (a *API) classicBlock(ctx context.Context, in *classicChange, note *auth.Action) error {
	return a.changeKey(ctx, in.Key(), note,
		func(d *guard.Admin) error { return d.Block(ctx, in.Name, in.User, 0, because(in.reason())) })
}

type classicAdjust struct {
	input.UserPath
	Body classicLimit
}

// classicLimit is a limit in the words of the configuration: rate_limiter.
type classicLimit struct {
	WindowSeconds    int     `json:"window_seconds" minimum:"1" maximum:"86400"`
	MaxMessages      int     `json:"max_messages" minimum:"1"`
	PenaltyThreshold int     `json:"penalty_threshold,omitempty" minimum:"0" doc:"Violations in a row that block the user; never by default"`
	BlockHours       float64 `json:"block_hours,omitempty" minimum:"0" maximum:"8760" doc:"For how long"`
	DurationSeconds  int     `json:"duration_seconds" minimum:"1" maximum:"31536000" doc:"How long the limit holds"`
	Reason           string  `json:"reason,omitempty" maxLength:"1024"`
}

func (l classicLimit) rule() (guard.Rule, error) {
	r := guard.Rule{Limit: l.MaxMessages, Window: time.Duration(l.WindowSeconds) * time.Second}
	switch {
	case l.PenaltyThreshold > 0:
		r.Penalty = guard.Penalty{After: l.PenaltyThreshold, Block: time.Duration(l.BlockHours * float64(time.Hour))}
	case l.BlockHours > 0:
		return r, driver.NewError(driver.ErrInvalid, "block_hours without penalty_threshold blocks nobody",
			"say after how many violations, too", nil)
	}
	return r, nil
}

// classicAdjust gives a user a limit of their own for some time.
func (a *API) classicAdjust(ctx context.Context, in *classicAdjust, note *auth.Action) error {
	r, err := in.Body.rule()
	if err != nil {
		return err
	}
	return a.changeKey(ctx, in.Key(), note, func(d *guard.Admin) error {
		return d.Override(ctx, in.Name, in.User, r, time.Duration(in.Body.DurationSeconds)*time.Second,
			because(in.Body.Reason))
	})
}

func (a *API) classicUnadjust(ctx context.Context, in *input.UserPath, note *auth.Action) error {
	return a.changeKey(ctx, in.Key(), note,
		func(d *guard.Admin) error { return d.ClearOverride(ctx, in.Name, in.User, because("")) })
}

type classicBlocked struct {
	input.Paging
	Name string `query:"name" doc:"Of one limit; every one by default" maxLength:"256"`
}

func (a *API) classicBlocked(ctx context.Context, in *classicBlocked) (api.LimitKeys, error) {
	return a.listKeys(ctx, &listKeys{Paging: in.Paging, Name: in.Name, Kind: string(guard.KindBlocked)})
}
