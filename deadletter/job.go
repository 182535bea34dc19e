package deadletter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// JobTopic is an internal topic with the jobs that wait or run, one message each, and notes about them. Pausing it
// pauses them.
const JobTopic = "ferry.letterjobs"

// JobHistory is how long a job that has ended stays in Jobs.
const JobHistory = 7 * 24 * time.Hour

// Job is a replay or a removal that lies in the broker until a Clerk has done it. It is plain data, survives every crash,
// and is gone on with where it was. It is about the letters that were dead when it was submitted.
type Job struct {
	// Remove deletes the letters instead of replaying them.
	Remove bool `json:"remove,omitempty"`
	// Topic, Group and State select the letters, and Where is the text of a filter. As in Selection.
	Topic string      `json:"topic,omitempty"`
	Group string      `json:"group,omitempty"`
	State ferry.State `json:"state,omitempty"`
	Where string      `json:"where,omitempty"`
	// To, ToGroup, After, Rate and MaxRounds are those of ReplayOptions.
	To        string        `json:"to,omitempty"`
	ToGroup   string        `json:"to_group,omitempty"`
	After     time.Duration `json:"after,omitempty"`
	Rate      float64       `json:"rate,omitempty"`
	MaxRounds int           `json:"max_rounds,omitempty"`
	// Patch is a JSON patch for each body, and Headers are set on each message.
	Patch   json.RawMessage   `json:"patch,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// KeepBody replays parse errors with the bytes that were found.
	KeepBody bool `json:"keep_body,omitempty"`
	// By says who asked for it.
	By string `json:"by,omitempty"`
}

// JobState is how far a job is.
type JobState string

// States of a job.
const (
	JobWaiting   JobState = "waiting"   // for a clerk
	JobRunning   JobState = "running"   // or interrupted, and about to be taken by another clerk
	JobDone      JobState = "done"      // every letter was looked at
	JobCancelled JobState = "cancelled" // what was done stays done
	JobFailed    JobState = "failed"    // it can never succeed: see Problem
)

// Ended reports whether nothing more is done for the job.
func (s JobState) Ended() bool { return s == JobDone || s == JobCancelled || s == JobFailed }

// JobStatus is a job and how far it is. After a kill, Done and Skipped may lack what was done in the last second before it.
type JobStatus struct {
	ID        string    `json:"id"`
	Job       Job       `json:"job"`
	State     JobState  `json:"state"`
	Submitted time.Time `json:"submitted"`
	// Note counts the notes that were made about it; the newest holds.
	Note     int            `json:"note,omitempty"`
	Noted    time.Time      `json:"noted,omitzero"`
	Instance string         `json:"instance,omitempty"` // of the clerk
	Phase    Phase          `json:"phase,omitempty"`
	Scanned  int            `json:"scanned,omitempty"`
	Total    int64          `json:"total,omitempty"`
	Done     int            `json:"done"`
	Skipped  int            `json:"skipped"`
	Why      map[string]int `json:"why,omitempty"`
	Problem  string         `json:"problem,omitempty"`
}

// replay is the work of a job.
func (j Job) replay() (ReplayOptions, error) {
	r := ReplayOptions{
		Selection: Selection{Topic: j.Topic, Group: j.Group, State: j.State}, To: j.To, ToGroup: j.ToGroup, After: j.After, Rate: j.Rate,
		MaxRounds: j.MaxRounds, remove: j.Remove,
	}
	var edits []Edit
	if j.Where != "" {
		f, err := ParseFilter(j.Where)
		if err != nil {
			return r, err
		}
		r.Where = f
	}
	if len(j.Patch) > 0 {
		p, err := ParsePatch(j.Patch)
		if err != nil {
			return r, err
		}
		edits = append(edits, PatchBody(p))
	}
	for _, name := range slices.Sorted(maps.Keys(j.Headers)) {
		edits = append(edits, SetHeader(name, j.Headers[name]))
	}
	if j.KeepBody {
		edits = append(edits, KeepBody())
	}
	if j.Remove && (len(edits) > 0 || j.To != "" || j.ToGroup != "" || j.After != 0) {
		return r, driver.NewError(driver.ErrInvalid, "letters that are deleted go nowhere and are not edited", "leave Remove or the rest out", nil)
	}
	if len(edits) > 0 {
		r.Edit = Edits(edits...)
	}
	return r, r.Check()
}

// Submit puts a job into the broker and returns its id. It is done as soon as a Clerk runs somewhere.
func (q *Queue) Submit(ctx context.Context, j Job) (string, error) {
	if _, err := j.replay(); err != nil {
		return "", err
	}
	body, err := json.Marshal(j)
	if err != nil {
		return "", driver.NewError(driver.ErrInvalid, "the job cannot be written as JSON", "see whether its patch is JSON", err)
	}
	id := rand.Text()[:12]
	m := &driver.Message{ID: id, OwnID: true, Topic: JobTopic, Body: body, ContentType: "application/json", DedupID: id, DedupWindow: time.Hour}
	if err := m.Validate(q.maxBody); err != nil {
		return "", err
	}
	return id, q.publish(ctx, []*driver.Message{m})[0].Err
}

// Jobs returns the jobs that wait, run, or ended in the last week, oldest first.
func (q *Queue) Jobs(ctx context.Context) ([]JobStatus, error) {
	all := map[string]JobStatus{}
	for _, state := range []driver.State{driver.StateReady, driver.StateWaiting, driver.StateInflight} {
		err := q.eachJob(ctx, driver.DefaultGroup, state, func(e driver.Entry) {
			s, _ := statusOf(e.Message) // a clerk will say what is wrong with it
			if state == driver.StateInflight {
				s.State = JobRunning
			}
			all[e.ID] = s
		})
		if errors.Is(err, driver.ErrNotFound) {
			return nil, nil // there never was one
		}
		if err != nil {
			return nil, err
		}
	}
	noted, _, err := q.notes(ctx) // after the messages: when one goes, its last note is there
	if err != nil {
		return nil, err
	}
	maps.Copy(all, noted)
	return slices.SortedFunc(maps.Values(all), func(a, b JobStatus) int { return a.Submitted.Compare(b.Submitted) }), nil
}

// Job returns one job. ErrNotFound if there is none, or it ended long ago.
func (q *Queue) Job(ctx context.Context, id string) (JobStatus, error) {
	for range 3 { // a note that is replaced while it is read may be missed
		all, err := q.Jobs(ctx)
		if err != nil {
			return JobStatus{}, err
		}
		for _, s := range all {
			if s.ID == id {
				return s, nil
			}
		}
	}
	return JobStatus{}, driver.NewError(driver.ErrNotFound, fmt.Sprintf("there is no job %q", id), "jobs are forgotten a week after they end", nil)
}

// CancelJob ends a job within a second or two. What is done stays done. ErrConflict if it has ended.
func (q *Queue) CancelJob(ctx context.Context, id string) error {
	s, err := q.Job(ctx, id)
	if err != nil {
		return err
	}
	if s.State.Ended() {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("job %q is %s", id, s.State), "there is nothing to cancel", nil)
	}
	m := &driver.Message{ID: cancelID(id), OwnID: true, Topic: JobTopic, Body: []byte(id), Delay: driver.Hold, TTL: JobHistory,
		DedupID: cancelID(id), DedupWindow: time.Hour}
	return q.publish(ctx, []*driver.Message{m})[0].Err
}

func cancelID(id string) string { return "cancel-" + id }

// statusOf is a job that nobody has worked on.
func statusOf(m *driver.Message) (JobStatus, error) {
	s := JobStatus{ID: m.ID, State: JobWaiting, Submitted: m.PublishedAt}
	if err := json.Unmarshal(m.Body, &s.Job); err != nil {
		return s, driver.NewError(driver.ErrInvalid, "the job cannot be read", "use the same version everywhere", err)
	}
	return s, nil
}
