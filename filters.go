package ferry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
)

// EncodingHeader is the header that says how filters changed a body, in the order in which they did:
// "zstd,aes-gcm;k=2". Only filters set it.
const EncodingHeader = "ferry-encoding"

const (
	maxEncodings = 8        // of one body: a header of a thousand would keep a consumer busy
	filterRoom   = 64 << 10 // what the bodies between two filters may be larger than allowed
)

// filters are those of a broker.
type filters struct {
	list    []codec.Filter
	byName  map[string]int // which of the list undoes an encoding; by number, since filters need not be comparable
	maxBody int
	log     *slog.Logger
}

func newFilters(list []codec.Filter, maxBody int, log *slog.Logger) (filters, error) {
	fs := filters{list: list, byName: map[string]int{}, maxBody: maxBody, log: log}
	if len(list) > maxEncodings {
		return fs, driver.NewError(ErrInvalid, fmt.Sprintf("%d filters are too many", len(list)),
			fmt.Sprintf("use at most %d", maxEncodings), nil)
	}
	for i, f := range list {
		if f == nil {
			return fs, driver.NewError(ErrInvalid, fmt.Sprintf("filter %d of %d is nil", i+1, len(list)),
				"leave it out", nil)
		}
		for _, name := range f.Names() {
			if !plainName(name) {
				return fs, driver.NewError(ErrInvalid,
					fmt.Sprintf("a filter undoes %q, which is no name of an encoding",
						name), "use letters, digits and '-'", nil)
			}
			if _, taken := fs.byName[name]; taken {
				return fs, driver.NewError(ErrInvalid, fmt.Sprintf("two filters undo %q", name), "keep one of them",
					nil)
			}
			fs.byName[name] = i
		}
	}
	return fs, nil
}

// plainName reports whether a name cannot be mistaken for something else in the header.
func plainName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
	})
}

// ApplyFilters changes the body of a message that has its id, as Options.Filters say, and sets EncodingHeader. Publish
// and worker.Emit do so themselves: it is for packages that publish on the driver. Neither the bytes of the body nor
// the map of headers are changed, but replaced.
func (b *Broker) ApplyFilters(ctx context.Context, m *Message) error {
	if _, found := m.Headers[EncodingHeader]; found {
		return driver.NewError(ErrInvalid, "the header "+EncodingHeader+" is set",
			"leave it out: filters set it (ferry.Options.Filters)", nil)
	}
	if len(b.filters.list) == 0 {
		return nil
	}
	return b.filters.apply(ctx, m)
}

func (fs *filters) apply(ctx context.Context, m *Message) error {
	body, encodings := m.Body, ""
	for i := range fs.list {
		out, encoding, err := fs.applyOne(ctx, i, body, aboutOf(m))
		switch {
		case err != nil:
			return notFiltered(m, err)
		case encoding == "":
			continue
		case encodings != "":
			encodings += ","
		}
		body, encodings = out, encodings+encoding
	}
	if encodings == "" {
		return nil
	}
	headers := make(map[string]string, len(m.Headers)+1)
	maps.Copy(headers, m.Headers)
	headers[EncodingHeader] = encodings
	m.Body, m.Headers = body, headers
	return m.Validate(fs.maxBody)
}

// applyOne calls one filter, and turns a panic into an error: what was to be encrypted is not sent as it is.
func (fs *filters) applyOne(ctx context.Context, i int, body []byte, a codec.About) (out []byte, encoding string,
	err error) {
	f := fs.list[i]
	defer fs.caught(ctx, f, &err)
	out, encoding, err = f.Apply(ctx, body, a)
	if err != nil || encoding == "" {
		return nil, "", err
	}
	if by, known := fs.byName[nameOf(encoding)]; !known || by != i || strings.ContainsRune(encoding, ',') {
		err = fmt.Errorf("filter %T calls its encoding %q, which it does not undo", f, encoding)
	}
	return out, encoding, err
}

// caught turns a panic of a filter into an error.
func (fs *filters) caught(ctx context.Context, f codec.Filter, err *error) {
	if p := recover(); p != nil {
		fs.log.ErrorContext(ctx, "a filter panicked", "filter", fmt.Sprintf("%T", f), "panic", p)
		*err = fmt.Errorf("filter %T panicked: %v", f, p)
	}
}

// UndoFilters returns a message with its body as it was before filters changed it, and without EncodingHeader: a copy,
// or m itself if none did. Workers do so before any handler: it is for packages that read from the driver. The error is
// an ErrInvalid if trying again cannot help, and otherwise an ErrNotApplied.
func (b *Broker) UndoFilters(ctx context.Context, m *Message) (*Message, error) {
	encodings, found := m.Headers[EncodingHeader]
	if !found {
		return m, nil
	}
	return b.filters.undo(ctx, m, encodings)
}

func (fs *filters) undo(ctx context.Context, m *Message, encodings string) (*Message, error) {
	list := strings.SplitN(encodings, ",", maxEncodings+1)
	if len(list) > maxEncodings {
		return nil, driver.NewError(ErrInvalid, fmt.Sprintf("the header %s names more than %d encodings",
			EncodingHeader, maxEncodings), "correct the producer", nil)
	}
	plain := *m
	for _, encoding := range slices.Backward(list) {
		by, known := fs.byName[nameOf(encoding)]
		if !known {
			return nil, unknownEncoding(encodings, encoding)
		}
		body, err := fs.undoOne(ctx, fs.list[by], plain.Body, encoding, aboutOf(m))
		if err != nil {
			return nil, notUndone(encoding, err)
		}
		plain.Body = body
	}
	plain.Headers = maps.Clone(m.Headers)
	if delete(plain.Headers, EncodingHeader); len(plain.Headers) == 0 {
		plain.Headers = nil
	}
	return &plain, nil
}

func (fs *filters) undoOne(ctx context.Context, f codec.Filter, body []byte, encoding string,
	a codec.About) (plain []byte, err error) {
	defer fs.caught(ctx, f, &err)
	return f.Undo(ctx, body, encoding, a, fs.maxBody+filterRoom)
}

// UndoEntry does so for a message as a group sees it. With an error it returns e itself.
func (b *Broker) UndoEntry(ctx context.Context, e Entry) (Entry, error) {
	if e.Message == nil {
		return e, nil
	}
	m, err := b.UndoFilters(ctx, e.Message)
	if err != nil || m == e.Message {
		return e, err
	}
	e.Message = m
	if e.Dead != nil {
		dead := *e.Dead
		dead.Message = m
		e.Dead = &dead
	}
	return e, nil
}

func aboutOf(m *Message) codec.About { return codec.About{Topic: m.Topic, ID: m.ID, Key: m.Key} }

// nameOf is the name of an encoding, without what is behind the semicolon.
func nameOf(encoding string) string {
	name, _, _ := strings.Cut(encoding, ";")
	return name
}

func notFiltered(m *Message, err error) error {
	if errors.Is(err, codec.ErrUnavailable) {
		return driver.NewError(ErrNotApplied, "the body cannot be filtered now",
			"see that what the filter asks answers, then try again", err)
	}
	return driver.NewError(ErrInvalid, fmt.Sprintf("the body for topic %s was not filtered, and nothing was sent",
		m.Topic), "see to the filter (ferry.Options.Filters)", err)
}

func unknownEncoding(encodings, encoding string) error {
	return driver.NewError(ErrInvalid,
		fmt.Sprintf("the body is encoded as %.200q, and there is no filter here for %.80q", encodings,
			nameOf(encoding)),
		"give this program the filters of the producer (ferry.Options.Filters), then replay the dead letter", nil)
}

func notUndone(encoding string, err error) error {
	if errors.Is(err, codec.ErrUnavailable) {
		return driver.NewError(ErrNotApplied, fmt.Sprintf("the body cannot be decoded from %.80q now", encoding),
			"see that what the filter asks answers, then try again", err)
	}
	return driver.NewError(ErrInvalid, fmt.Sprintf("the body cannot be decoded from %.80q", encoding),
		"see that this program has the keys of the producer, then replay the dead letter; a body that was tampered with or "+
			"cut stays one", err)
}
