package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// A note is a held message in JobTopic: how far a job was at some time. The next note of a job is stored before the one
// before it is deleted, so that a kill leaves one or two; the newest holds.

const notePrefix = "note-"

// notes returns the newest note of each job, and which messages are those.
func (q *Queue) notes(ctx context.Context) (newest map[string]JobStatus, at map[string][]driver.Target, err error) {
	newest, at = map[string]JobStatus{}, map[string][]driver.Target{}
	err = q.eachJob(ctx, "", driver.StateHeld, func(e driver.Entry) {
		var s JobStatus
		if !strings.HasPrefix(e.ID, notePrefix) || json.Unmarshal(e.Body, &s) != nil || s.ID == "" {
			return
		}
		at[s.ID] = append(at[s.ID], driver.Target{Topic: JobTopic, ID: e.ID})
		if known, ok := newest[s.ID]; !ok || known.Note < s.Note {
			newest[s.ID] = s
		}
	})
	return newest, at, err
}

// eachJob visits the messages of JobTopic in one state.
func (q *Queue) eachJob(ctx context.Context, group string, state driver.State, visit func(e driver.Entry)) error {
	query := driver.Query{Topic: JobTopic, Group: group, State: state, Limit: pagePart}
	for {
		p, err := q.driver.Browse(ctx, query)
		if err != nil {
			return err
		}
		for _, e := range p.Entries {
			if e.Message != nil {
				visit(e)
			}
		}
		if query.Cursor = p.Next; p.Next == "" {
			return nil
		}
	}
}

// note stores how far a job is, and deletes what was noted before.
func (q *Queue) note(ctx context.Context, s *JobStatus, before []driver.Target) ([]driver.Target, error) {
	s.Note++
	s.Noted = time.Now().UTC()
	body, err := json.Marshal(s)
	if err != nil {
		return before, err
	}
	m := &driver.Message{ID: fmt.Sprintf("%s%s-%d", notePrefix, s.ID, s.Note), Topic: JobTopic, Body: body, ContentType: "application/json", Delay: driver.Hold, TTL: JobHistory}
	m.OwnID = true
	this := driver.Target{Topic: JobTopic, ID: m.ID}
	switch err := q.publish(ctx, []*driver.Message{m})[0].Err; {
	case errors.Is(err, driver.ErrNotApplied):
		return before, err
	case err != nil:
		return append(before, this), err // it may be stored all the same: its number is spent
	}
	for _, err := range q.delete(ctx, before) {
		if err != nil && !permanent(err) {
			return append(before, this), nil // the next note deletes them
		}
	}
	return []driver.Target{this}, nil
}

// cancelled reports whether somebody wants a job to end.
func (q *Queue) cancelled(ctx context.Context, id string) (bool, error) {
	_, err := q.driver.Get(ctx, driver.Target{Topic: JobTopic, ID: cancelID(id)})
	if errors.Is(err, driver.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
