// Package registry asks a schema registry that speaks Confluent's HTTP API (Confluent, Redpanda, Karapace, Apicurio)
// for schemas and their ids, and writes and reads the Confluent wire format. Package codec/avro is built on it.
package registry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// Options of a Registry.
type Options struct {
	// URLs of one registry, asked in turn until one answers. A user and password in the first one are sent to all.
	URLs []string
	// Token is sent as a bearer token.
	Token string
	// HTTP makes the requests: certificates and proxies are set there. Defaults to a client of its own.
	HTTP *http.Client
	// Timeout bounds one question. Defaults to 5 s.
	Timeout time.Duration
	// Subject names the subject of a record type in a topic. Defaults to TopicName.
	Subject func(topic, record string) string
	// Register lets a producer add its schema to the subject. Otherwise the schema must be there, as it is where schemas
	// are reviewed and registered by a pipeline.
	Register bool
}

// TopicName is the subject "<topic>-value": one type in each topic.
func TopicName(topic, _ string) string { return topic + "-value" }

// RecordName is the full name of the record: one type, whichever topics it is in.
func RecordName(_, record string) string { return record }

// TopicRecordName is "<topic>-<record>": several types in one topic, each with a history of its own.
func TopicRecordName(topic, record string) string { return topic + "-" + record }

// Schema is a schema as the registry has it.
type Schema struct {
	Type       string // AVRO, PROTOBUF or JSON
	Text       string
	References []Reference
}

// Reference names a schema that another one uses.
type Reference struct {
	Name    string // of the type, as the schema writes it
	Subject string
	Version int
}

// Version is one schema of a subject's history.
type Version struct {
	Number int
	Schema Schema
}

// Registry is a client with a cache. It is safe for concurrent use, and holds no goroutine.
type Registry struct {
	client   *sr.Client
	timeout  time.Duration
	subject  func(topic, record string) string
	register bool

	schemas    cache[int, Schema]
	references cache[Reference, Schema]
	ids        cache[registration, int]
}

// registration is a schema without references in a subject.
type registration struct{ subject, kind, text string }

// New returns a Registry. It does not ask anything yet.
func New(o Options) (*Registry, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("registry: no URL: give at least one, for example http://localhost:8081")
	}
	urls, user, err := splitUser(o.URLs)
	if err != nil {
		return nil, err
	}
	opts := []sr.ClientOpt{sr.URLs(urls...), sr.HTTPClient(bounded(o.HTTP)), sr.UserAgent("ferry")}
	if user != nil {
		password, _ := user.Password()
		opts = append(opts, sr.BasicAuth(user.Username(), password))
	}
	if o.Token != "" {
		opts = append(opts, sr.BearerToken(o.Token))
	}
	client, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	r := &Registry{client: client, timeout: o.Timeout, subject: o.Subject, register: o.Register}
	if r.timeout <= 0 {
		r.timeout = 5 * time.Second
	}
	if r.subject == nil {
		r.subject = TopicName
	}
	return r, nil
}

// splitUser takes the user out of the URLs, so that no error shows a password.
func splitUser(urls []string) (plain []string, user *url.Userinfo, err error) {
	for i, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, nil, fmt.Errorf("registry: URL %d of %d is not one of http or https: "+
				"write it like http://localhost:8081", i+1, len(urls))
		}
		if user == nil {
			user = u.User
		}
		u.User = nil
		plain = append(plain, u.String())
	}
	return plain, user, nil
}

// Subject returns the subject of a record type in a topic.
func (r *Registry) Subject(topic, record string) string { return r.subject(topic, record) }

// Schema returns the schema with an id. It is asked for once.
func (r *Registry) Schema(ctx context.Context, id int) (Schema, error) {
	return r.schemas.get(ctx, id, func(ctx context.Context) (Schema, error) {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		asked := fmt.Sprintf("schema %d", id)
		s, err := r.client.SchemaByID(ctx, id)
		if err != nil {
			return Schema{}, explain(asked, err)
		}
		return answered(asked, s)
	})
}

// Referenced returns a schema that another one refers to. It is asked for once.
func (r *Registry) Referenced(ctx context.Context, ref Reference) (Schema, error) {
	return r.references.get(ctx, ref, func(ctx context.Context) (Schema, error) {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		asked := fmt.Sprintf("version %d of subject %s", ref.Version, ref.Subject)
		s, err := r.client.SchemaByVersion(ctx, ref.Subject, ref.Version)
		if err != nil {
			return Schema{}, explain(asked, err)
		}
		return answered(asked, s.Schema)
	})
}

// ID returns the id of a schema in a subject, and adds the schema if Options.Register allows it. It is asked for once.
func (r *Registry) ID(ctx context.Context, subject string, s Schema) (int, error) {
	return r.ids.get(ctx, registration{subject, s.Type, s.Text}, func(ctx context.Context) (int, error) {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		wire, err := toWire(s)
		if err != nil {
			return 0, err
		}
		if r.register {
			id, err := r.client.RegisterSchema(ctx, subject, wire, -1, -1)
			return answeredID("registering a schema in subject "+subject, id, err)
		}
		found, err := r.client.LookupSchema(ctx, subject, wire)
		return answeredID("the id of a schema in subject "+subject, found.ID, err)
	})
}

// Versions returns the history of a subject, oldest first, or only its newest version. A subject that is not there has
// none.
func (r *Registry) Versions(ctx context.Context, subject string, newestOnly bool) ([]Version, error) {
	numbers, err := r.versionNumbers(ctx, subject)
	if err != nil {
		return nil, err
	}
	if newestOnly && len(numbers) > 1 {
		numbers = numbers[len(numbers)-1:]
	}
	versions := make([]Version, 0, len(numbers))
	for _, n := range numbers {
		s, err := r.Referenced(ctx, Reference{Subject: subject, Version: n}) // each is a question of its own
		if err != nil {
			return nil, err
		}
		versions = append(versions, Version{Number: n, Schema: s})
	}
	return versions, nil
}

func (r *Registry) versionNumbers(ctx context.Context, subject string) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	numbers, err := r.client.SubjectVersions(ctx, subject)
	if err != nil {
		if err = explain("the versions of subject "+subject, err); errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		return nil, err
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Level is what a new schema of a subject must be able to do with data of the older ones.
type Level string

// The levels of Confluent. Those that are transitive look at all versions, the others at the newest.
const (
	None               Level = "NONE"
	Backward           Level = "BACKWARD" // the new schema reads what the old one wrote: update consumers first
	BackwardTransitive Level = "BACKWARD_TRANSITIVE"
	Forward            Level = "FORWARD" // the old schema reads what the new one writes: update producers first
	ForwardTransitive  Level = "FORWARD_TRANSITIVE"
	Full               Level = "FULL" // both
	FullTransitive     Level = "FULL_TRANSITIVE"
)

// Transitive reports whether all versions count, not the newest alone.
func (l Level) Transitive() bool {
	return l == BackwardTransitive || l == ForwardTransitive || l == FullTransitive
}

// Level returns the compatibility level of a subject, or that of the registry where the subject has none of its own.
func (r *Registry) Level(ctx context.Context, subject string) (Level, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	answer := r.client.Compatibility(sr.WithParams(ctx, sr.DefaultToGlobal), subject)[0]
	err := answer.Err
	if err != nil {
		err = explain("the compatibility level of subject "+subject, err)
	}
	if errors.Is(err, ErrNotFound) { // a registry that does not know the parameter
		if answer = r.client.Compatibility(ctx)[0]; answer.Err != nil {
			return "", explain("the compatibility level of the registry", answer.Err)
		}
		err = nil
	}
	return Level(answer.Level.String()), err
}

// Compatible asks whether the registry would take a schema as the next version of a subject. A subject that is not
// there takes any.
func (r *Registry) Compatible(ctx context.Context, subject string, s Schema, l Level) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	wire, err := toWire(s)
	if err != nil {
		return err
	}
	const newest, all = -1, -2
	against := newest
	if l.Transitive() {
		against = all
	}
	answer, err := r.client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, against, wire)
	switch {
	case err != nil:
		if err = explain("the compatibility with subject "+subject, err); errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	case !answer.Is:
		return fmt.Errorf("registry: %w with subject %s (%s): give new fields a default and keep the types of old ones, or "+
			"use another topic: %q",
			ErrIncompatible, subject, l, answer.Messages)
	}
	return nil
}

// answered returns the schema of an answer, which would be kept for ever. One without a text is not a registry's, but
// that of something between.
func answered(asked string, s sr.Schema) (Schema, error) {
	if s.Schema == "" {
		return Schema{}, unavailable(asked, errors.New("the answer has no schema"))
	}
	return fromWire(s), nil
}

// answeredID returns the id of an answer, likewise. One that does not fit the header would have bodies name another
// schema.
func answeredID(asked string, id int, err error) (int, error) {
	switch {
	case err != nil:
		return 0, explain(asked, err)
	case id <= 0 || id > math.MaxInt32:
		return 0, unavailable(asked, fmt.Errorf("the answer has the id %d", id))
	}
	return id, nil
}

func fromWire(s sr.Schema) Schema {
	refs := make([]Reference, len(s.References))
	for i, r := range s.References {
		refs[i] = Reference{r.Name, r.Subject, r.Version}
	}
	return Schema{Type: s.Type.String(), Text: s.Schema, References: refs}
}

func toWire(s Schema) (sr.Schema, error) {
	wire := sr.Schema{Schema: s.Text}
	if err := wire.Type.UnmarshalText([]byte(s.Type)); err != nil {
		return wire, fmt.Errorf("registry: a schema of type %q: use AVRO, PROTOBUF or JSON: %w", s.Type, err)
	}
	for _, r := range s.References {
		wire.References = append(wire.References, sr.SchemaReference{Name: r.Name, Subject: r.Subject, Version: r.Version})
	}
	return wire, nil
}
