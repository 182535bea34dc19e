package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

func (a *API) selection(ctx context.Context, in input.Letters) (deadletter.Selection, error) {
	where, err := a.filter(ctx, in.Topic, in.Where)
	return deadletter.Selection{Topic: in.Topic, Group: in.Group, State: driver.State(in.State), Where: where}, err
}

type listLetters struct {
	input.Letters
	input.Paging
}

func (a *API) listLetters(ctx context.Context, in *listLetters) (api.MessagePage, error) {
	sel, err := a.selection(ctx, in.Letters)
	if err != nil {
		return api.MessagePage{}, err
	}
	p, err := a.letters.Browse(ctx, deadletter.Query{Selection: sel, Cursor: in.Cursor, Limit: in.Limit,
		MaxScan: searchScan, MaxTime: searchTime})
	if err != nil {
		return api.MessagePage{}, err
	}
	page := api.MessagePage{Messages: make([]api.Message, len(p.Letters)), Scanned: p.Scanned, Total: p.Total,
		Faulty: p.Faulty, Next: p.Next}
	for i, l := range p.Letters {
		page.Messages[i] = a.viewEntry(ctx, l.From, l.Entry)
	}
	if p.Fault != nil {
		page.Fault, _ = tell(p.Fault)
	}
	return page, nil
}

type tallyLetters struct {
	input.Letters
	Cursor string `query:"cursor" doc:"Where to go on: next of an earlier answer" maxLength:"65536"`
	By     string `query:"by" enum:"fingerprint,reason,topic,group,key,day" default:"fingerprint" doc:"What letters are grouped by"`
}

func (a *API) tallyLetters(ctx context.Context, in *tallyLetters) (api.Tally, error) {
	sel, err := a.selection(ctx, in.Letters)
	if err != nil {
		return api.Tally{}, err
	}
	t, err := a.letters.Tally(ctx, deadletter.TallyQuery{By: deadletter.By(in.By),
		Query: deadletter.Query{Selection: sel, Cursor: in.Cursor, MaxScan: searchScan, MaxTime: searchTime}})
	if err != nil {
		return api.Tally{}, err
	}
	return viewTally(t), nil
}

func viewTally(t deadletter.Tally) api.Tally {
	v := api.Tally{Matched: t.Matched, Buckets: make([]api.Bucket, len(t.Buckets)), Others: t.Others, Faulty: t.Faulty,
		Scanned: t.Scanned, Total: t.Total, Next: t.Next}
	for i, b := range t.Buckets {
		v.Buckets[i] = api.Bucket{Count: b.Count, Topic: b.Topic, Group: b.Group, Reason: string(b.Reason),
			Fingerprint: b.Fingerprint, Key: b.Key, Day: b.Day,
			Bytes: b.Bytes, FirstDied: jsontime.At(b.First), LastDied: jsontime.At(b.Last)}
	}
	return v
}

func (a *API) showLetter(ctx context.Context, in *input.LetterPath) (api.Message, error) {
	l, err := a.letters.Get(ctx, in.Target())
	if err != nil {
		return api.Message{}, err
	}
	return a.viewWhole(ctx, l.From, l.Entry), nil
}

type replayLetter struct {
	input.LetterPath
	Body *api.ReplayOne
}

// replayLetter brings one dead letter back to work, with an edit if one is given.
func (a *API) replayLetter(ctx context.Context, in *replayLetter, note *auth.Action) (api.Replayed, error) {
	note.Topic, note.Group, note.Detail = in.Topic, in.Group, in.ID
	o := api.ReplayOne{}
	if in.Body != nil {
		o = *in.Body
	}
	if o.To != "" {
		if err := may(ctx, auth.Publish, o.To); err != nil {
			return api.Replayed{}, err
		}
	}
	if err := a.mayChange(ctx, in.Topic, o.To, o.Edit != nil && o.Edit.Patch != nil); err != nil {
		return api.Replayed{}, err
	}
	edit, err := editOf(o.Edit)
	if err != nil {
		return api.Replayed{}, err
	}
	return a.replayOne(ctx, in.Target(), deadletter.ReplayOptions{To: o.To, ToGroup: o.ToGroup,
		After: time.Duration(o.After), Edit: edit}, note)
}

// mayChange returns a problem if a replay would show whoever asks what they may not see: by patching bodies, or in
// another topic.
func (a *API) mayChange(ctx context.Context, topic, to string, patch bool) error {
	m := a.maskOf(topic)
	if patch {
		if err := m.patches(auth.From(ctx).May(auth.Payload, topic)); err != nil {
			return err
		}
	}
	if to == "" || to == topic {
		return nil
	}
	return m.leaves(a.maskOf(to))
}

// replayOne replays the death of a letter that is there now.
func (a *API) replayOne(ctx context.Context, t driver.Target, o deadletter.ReplayOptions,
	note *auth.Action) (api.Replayed, error) {
	l, err := a.letters.Get(ctx, t)
	if err != nil {
		return api.Replayed{}, err
	}
	o.Only = []driver.Target{l.Target()}
	o.State = l.State
	var why error
	o.Each = func(r deadletter.LetterReport) { why = r.Why }
	r, err := a.letters.Replay(ctx, o)
	note.Count = int64(r.Done)
	return api.Replayed{Done: r.Done, Skipped: r.Skipped, Why: r.Why}, errors.Join(err, why)
}

// editOf returns what changes a message; nil for nothing.
func editOf(e *api.Edit) (deadletter.Edit, error) {
	if e == nil {
		return nil, nil
	}
	body, err := bodyOr(e.Body, e.BodyBase64)
	if err != nil {
		return nil, err
	}
	if body != nil && e.Patch != nil {
		return nil, driver.NewError(driver.ErrInvalid, "both a body and a patch are given", "use one of them", nil)
	}
	var all []deadletter.Edit
	if body != nil {
		all = append(all, deadletter.SetBody(body, e.ContentType))
	}
	if e.Patch != nil {
		p, err := patchOf(e.Patch)
		if err != nil {
			return nil, err
		}
		all = append(all, deadletter.PatchBody(p))
	}
	for name, value := range e.Headers {
		if value == "" {
			all = append(all, deadletter.RemoveHeader(name))
		} else {
			all = append(all, deadletter.SetHeader(name, value))
		}
	}
	return deadletter.Edits(all...), nil
}

func patchOf(steps []api.PatchStep) (deadletter.Patch, error) {
	text, err := patchText(steps)
	if err != nil {
		return nil, err
	}
	return deadletter.ParsePatch(text)
}

// patchText returns the JSON of a patch. A step without a value has none, which is not the same as null.
func patchText(steps []api.PatchStep) ([]byte, error) {
	if steps == nil {
		return nil, nil
	}
	text, err := json.Marshal(steps)
	if err != nil {
		return nil, driver.NewError(driver.ErrInvalid, "the patch cannot be written as JSON", "see RFC 6902", err)
	}
	return text, nil
}

func (a *API) removeLetter(ctx context.Context, in *input.LetterPath, note *auth.Action) error {
	note.Topic, note.Group, note.Detail, note.Count = in.Topic, in.Group, in.ID, 1
	l, err := a.letters.Get(ctx, in.Target())
	if err != nil {
		return err
	}
	return a.driver.Delete(ctx, []driver.Target{l.Target()})[0]
}

type exportLetters struct {
	input.Letters
	Format string `query:"format" enum:"ndjson,csv,json" default:"ndjson" doc:"ndjson, which an import reads; csv for spreadsheets; json as one list"`
}

// exportLetters writes letters as they are found. What is masked cannot be exported: a file that hides parts is no
// copy.
func (a *API) exportLetters(ctx context.Context, in *exportLetters, w *writer) error {
	if m := a.maskOf(in.Topic); len(m.Fields)+len(m.Headers) > 0 {
		return unseen("the server masks parts of these messages, so that they are not exported",
			"export them with ferry dlq export, on the broker itself")
	}
	sel, err := a.selection(ctx, in.Letters)
	if err != nil {
		return err
	}
	if in.Format == "json" {
		return a.exportList(ctx, sel, w)
	}
	if in.Format == "csv" {
		w.contentType = "text/csv; charset=utf-8"
	}
	_, err = a.letters.Export(ctx, w, sel, deadletter.Format(in.Format))
	return err
}

// exportList writes the lines of an export as one list.
func (a *API) exportList(ctx context.Context, sel deadletter.Selection, w *writer) error {
	w.contentType = "application/json"
	lines := &listWriter{w: w}
	if _, err := a.letters.Export(ctx, lines, sel, deadletter.NDJSON); err != nil {
		return err
	}
	return lines.end()
}

// listWriter makes one JSON list of lines.
type listWriter struct {
	w     *writer
	begun bool
}

func (l *listWriter) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		before := ","
		if !l.begun {
			before = "["
		}
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) == 0 {
			continue
		}
		if _, err := l.w.Write(append([]byte(before), line...)); err != nil {
			return 0, err
		}
		l.begun = true
	}
	return len(p), nil
}

func (l *listWriter) end() error {
	end := "]\n"
	if !l.begun {
		end = "[]\n"
	}
	_, err := l.w.Write([]byte(end))
	return err
}

// MaxBody is the most bytes of a request that any route takes: of an import. Larger ones are for the command line.
const MaxBody = 32 << 20

type importLetters struct {
	Topic      string `query:"topic" doc:"Topic that they are published to; by default the one each came from" maxLength:"128"`
	EveryGroup bool   `query:"every_group" doc:"Allow a topic with several groups, each of which then gets the messages"`
	KeepBody   bool   `query:"keep_body" doc:"Publish what could not be decoded with the bytes that were found"`
	DryRun     bool   `query:"dry_run" doc:"Only read and check"`
	RawBody    []byte `contentType:"application/x-ndjson"`
}

// importLetters publishes letters that an export wrote, as messages to be handled.
func (a *API) importLetters(ctx context.Context, in *importLetters, note *auth.Action) (api.Imported, error) {
	note.Topic = in.Topic
	r, err := a.letters.Import(ctx, bytes.NewReader(in.RawBody),
		deadletter.ImportOptions{To: in.Topic, EveryGroup: in.EveryGroup, RawBody: in.KeepBody, DryRun: in.DryRun})
	note.Count = int64(r.Published)
	return api.Imported{Lines: r.Lines, Published: r.Published, Present: r.Present, Duplicates: r.Duplicates}, err
}
