package wecom

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
)

// Headers of a published message: what a dead letter needs for a person to understand it without opening the body.
const (
	HeaderKind    = "kf_msg_type"
	HeaderOrigin  = "kf_origin"
	HeaderAccount = "kf_open_kfid"
	HeaderUser    = "kf_external_userid"
	HeaderGroup   = "kf_user_group"
	HeaderSession = "kf_session"
	HeaderID      = "kf_msg_id"
	HeaderSent    = "kf_send_time"
	// HeaderSize is how many bytes a message had that was too large for the broker: its body is only the beginning.
	HeaderSize = "kf_size"
)

// Recognised is for how long a message is recognised that comes again, unless Config.Recognise says otherwise. The
// vendor keeps three days, and may give any of them again.
const Recognised = 4 * 24 * time.Hour

// maxName bounds what becomes an id or a key: longer ones are replaced by a hash.
const maxName = 100

// envelope makes a message for the broker of what the vendor gave, whatever that is: the vendor's bytes are the body,
// its msgid is the id, and the customer the key. What has no msgid is known by its content.
func (p *Pipeline) envelope(account string, raw json.RawMessage) *ferry.Message {
	var m Message
	_ = json.Unmarshal(raw, &m) // what cannot be read is a parse error of the handler's, and kept there
	if m.Account == "" {
		m.Account = account
	}
	id := name(m.ID)
	if id == "" {
		id = digest(string(raw))
	}
	key := name(m.User)
	if key == "" {
		key = name(m.Account)
	}
	return &ferry.Message{
		Topic: p.config.Topic, ID: id, OwnID: true, Key: key, DedupID: id, DedupWindow: p.config.Recognise,
		Body: raw, ContentType: "application/json",
		Headers: map[string]string{
			HeaderKind: name(string(m.Kind)), HeaderOrigin: strconv.Itoa(int(m.Origin)), HeaderID: id,
			HeaderAccount: name(m.Account), HeaderUser: name(m.User), HeaderGroup: p.groupOf(m.User),
			HeaderSession: name(m.Account) + "/" + name(m.User), HeaderSent: strconv.FormatInt(m.Sent, 10),
		},
	}
}

// name returns a text of the vendor's if it can be an id, and a hash of it otherwise.
func name(text string) string {
	if len(text) > maxName || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return digest(text)
	}
	return text
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + hex.EncodeToString(sum[:16])
}
