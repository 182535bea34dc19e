package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/safehttp"
)

// maxID is how long the id of a message may be: with index and stage it is still an id of the broker.
const maxID = 64

// job is one target of a message, as it lies in the broker.
type job struct {
	ID    string   `json:"id"`
	Index int      `json:"index"`
	Chain []Target `json:"chain"` // the target and its fallbacks
	Stage int      `json:"stage,omitempty"`

	Title       string            `json:"title"`
	Body        string            `json:"body"`
	Format      Format            `json:"format"`
	Priority    Priority          `json:"priority,omitempty"`
	Data        map[string]string `json:"data,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Attachments []Attachment      `json:"attachments,omitempty"`
	Retry       Retry             `json:"retry"`

	// Digest asks that the job is collected with others.
	Digest *Digest `json:"digest,omitempty"`
	// Flush is the number of the digest that this job ends; it is no notification itself.
	Flush uint64 `json:"flush,omitempty"`
	// Members are the jobs that this one stands for: it is a digest of them.
	Members []reference `json:"members,omitempty"`
}

// reference names one target of a message.
type reference struct {
	ID    string `json:"id"`
	Index int    `json:"index"`
}

func (j *job) reference() reference { return reference{j.ID, j.Index} }

// target is where the job goes now.
func (j *job) target() Target { return j.Chain[j.Stage] }

// name is the id of the job's message, the same whenever the same job is published.
func (j *job) name() string { return fmt.Sprintf("%s/%d/%d", j.ID, j.Index, j.Stage) }

// references are whose receipts the job decides.
func (j *job) references() []reference {
	if len(j.Members) > 0 {
		return j.Members
	}
	return []reference{j.reference()}
}

// digestID is the id of the digest that the job is, or empty.
func (j *job) digestID() string {
	if len(j.Members) > 0 {
		return j.ID
	}
	return ""
}

// options of the message that carries the job.
func (j *job) options() []ferry.PublishOption {
	return []ferry.PublishOption{
		ferry.ID(j.name()), ferry.Key(j.target().key()), ferry.Priority(j.Priority),
		ferry.MaxAttempts(j.Retry.attempts()), ferry.Retry(j.Retry.policy()),
	}
}

// key orders what goes to one destination. It is a digest, since a destination may be a URL with a secret.
func (t Target) key() string {
	sum := sha256.Sum256([]byte(t.To))
	return t.Channel + ":" + hex.EncodeToString(sum[:12])
}

// shown is a destination for people.
func shown(to string) string {
	if !strings.Contains(to, "://") {
		return to
	}
	u, err := url.Parse(to)
	if err != nil {
		return "***"
	}
	return safehttp.Redact(u)
}
