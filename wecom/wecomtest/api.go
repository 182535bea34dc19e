package wecomtest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ferrymq/ferry/wecom"
)

// Codes of the vendor that only a caller's mistake brings.
const (
	codeWrongMedia    = 40007
	codeWrongSize     = 40009
	codeWrongArgument = 40035
)

// answer is what a call returns beside its verdict, or its code.
type answer map[string]any

func failure(code int) answer { return answer{"errcode": code} }

// routes are the calls that there are. Each but gettoken needs an access token.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	route := func(method, call string, needsToken bool, handle func(r *http.Request) answer) {
		mux.HandleFunc(method+" /cgi-bin/"+call, func(w http.ResponseWriter, r *http.Request) {
			f := s.nextFault(call)
			if f.delay > 0 {
				select {
				case <-time.After(f.delay):
				case <-r.Context().Done():
				case <-s.closing:
				}
			}
			if f.status != 0 {
				w.WriteHeader(f.status)
				_, _ = io.WriteString(w, f.body)
				return
			}
			write(w, s.guarded(f.code, needsToken, r, handle))
		})
	}
	route("GET", "gettoken", false, s.getToken)
	route("POST", "kf/sync_msg", true, s.syncMessages)
	route("POST", "kf/send_msg", true, s.sendMessage)
	route("POST", "kf/send_msg_on_event", true, s.sendOnEvent)
	route("POST", "kf/service_state/get", true, s.getState)
	route("POST", "kf/service_state/trans", true, s.changeState)
	route("POST", "media/upload", true, s.upload)
	route("GET", "media/get", true, s.download)
	return mux
}

func write(w http.ResponseWriter, a answer) {
	if content, ok := a["file"].([]byte); ok {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="file"`)
		_, _ = w.Write(content)
		return
	}
	code, _ := a["errcode"].(int)
	a["errcode"], a["errmsg"] = code, fmt.Sprintf("code %d", code)
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(a)
}

// guarded makes a call, unless it is to fail with a code or its access token is not good.
func (s *Server) guarded(code int, needsToken bool, r *http.Request, handle func(r *http.Request) answer) answer {
	if code != 0 {
		return failure(code)
	}
	if needsToken && !s.tokenIsGood(r.URL.Query().Get("access_token")) {
		return failure(wecom.CodeExpiredToken)
	}
	return handle(r)
}

// nextFault counts a call, and returns what is to become of it.
func (s *Server) nextFault(call string) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
	f := s.faults[call].take()
	f.delay = s.delays[call].take().delay
	return f
}

// take counts a fault that happens, if there is one left.
func (f *fault) take() fault {
	if f == nil || f.times == 0 {
		return fault{}
	}
	f.times--
	return *f
}

func (s *Server) tokenIsGood(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.tokens[token])
}

func (s *Server) getToken(r *http.Request) answer {
	q := r.URL.Query()
	if q.Get("corpid") != s.o.Corp || q.Get("corpsecret") != string(s.secret) {
		return failure(wecom.CodeWrongSecret)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token := rand.Text()
	s.tokens[token] = time.Now().Add(s.o.TokenLasts)
	return answer{"access_token": token, "expires_in": int(s.o.TokenLasts.Seconds())}
}

// decode reads the body of a call.
func decode[T any](r *http.Request) (in T, ok bool) {
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&in)
	return in, err == nil
}

// keptFor is how long the vendor keeps messages for who has no cursor.
const keptFor = 3 * 24 * time.Hour

func (s *Server) syncMessages(r *http.Request) answer {
	in, ok := decode[struct {
		Cursor  string `json:"cursor"`
		Token   string `json:"token"`
		Limit   int    `json:"limit"`
		Account string `json:"open_kfid"`
		Voice   int    `json:"voice_format"`
	}](r)
	if !ok || in.Voice < 0 || in.Voice > 1 || in.Limit > 1000 || len(in.Cursor) > 64 || len(in.Token) > 128 {
		return failure(codeWrongArgument)
	}
	if in.Account == "" {
		return failure(wecom.CodeWrongAccount)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.account(in.Account)
	a.silk = in.Voice == 1
	if code := a.admit(in.Token, s.o.Tokenless); code != 0 {
		return failure(code)
	}
	from, ok := s.position(a, in.Cursor)
	if !ok {
		return failure(codeWrongArgument)
	}
	a.pages++
	if s.o.Empty > 0 && a.pages%s.o.Empty == 0 && from < len(a.log) {
		return s.page(a, from, from, a.pages)
	}
	return s.page(a, from, min(from+min(in.Limit, s.o.Page), len(a.log)), 0)
}

// admit checks the token of a callback, and counts calls without one.
func (a *account) admit(token string, tokenless int) int {
	now := time.Now()
	if token != "" {
		if now.After(a.msgTokens[token]) {
			return wecom.CodeWrongMsgToken
		}
		return 0
	}
	recent := a.tokenless[:0]
	for _, at := range a.tokenless {
		if now.Sub(at) < time.Minute {
			recent = append(recent, at)
		}
	}
	a.tokenless = recent
	if len(recent) >= tokenless {
		return wecom.CodeLimited
	}
	a.tokenless = append(a.tokenless, now)
	return 0
}

// position returns where a cursor stands; without one, at the first message of the last three days.
func (s *Server) position(a *account, cursor string) (int, bool) {
	if cursor == "" {
		from := 0
		for from < len(a.log) && time.Since(a.times[from]) > keptFor {
			from++
		}
		return from, true
	}
	var epoch, at, variant int
	if _, err := fmt.Sscanf(cursor, "c%d.%d.%d", &epoch, &at, &variant); err != nil {
		return 0, false
	}
	return at, epoch == s.epoch && at <= len(a.log) && cursor == s.cursor(at, variant)
}

func (s *Server) cursor(at, variant int) string {
	return fmt.Sprintf("c%d.%d.%d", s.epoch, at, variant)
}

// page answers with messages [from, to). An empty page with more behind it has a variant of its own: its cursor is
// another one at the same place.
func (s *Server) page(a *account, from, to, variant int) answer {
	more := 0
	if to < len(a.log) {
		more = 1
	}
	list := append([]json.RawMessage{}, a.log[from:to]...)
	return answer{"next_cursor": s.cursor(to, variant), "has_more": more, "msg_list": list}
}

func (s *Server) sendMessage(r *http.Request) answer {
	in, ok := decode[struct {
		User    string      `json:"touser"`
		Account string      `json:"open_kfid"`
		ID      string      `json:"msgid"`
		Kind    wecom.Kind  `json:"msgtype"`
		Text    *wecom.Text `json:"text"`
	}](r)
	if !ok || in.User == "" || !goodReply(in.ID, in.Kind, in.Text) {
		return failure(codeWrongArgument)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.session(in.Account, in.User)
	switch {
	case one.state != wecom.StateNew && one.state != wecom.StateAssistant:
		return failure(wecom.CodeState)
	case time.Since(one.lastSaid) > wecom.ReplyWithin:
		return failure(wecom.CodeReplyTime)
	case one.replies >= wecom.MaxReplies:
		return failure(wecom.CodeReplyCount)
	}
	reply := Sent{Account: in.Account, User: in.User, ID: in.ID, Kind: in.Kind}
	if in.Text != nil {
		reply.Text = in.Text.Content
	}
	a := s.keep(reply)
	if a["errcode"] == nil {
		one.replies++
	}
	return a
}

// goodReply reports whether id and content are what the vendor takes.
func goodReply(id string, kind wecom.Kind, text *wecom.Text) bool {
	strange := func(r rune) bool {
		return !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-", r)
	}
	if len(id) > 32 || strings.ContainsFunc(id, strange) || kind == "" {
		return false
	}
	return kind != wecom.KindText || text != nil && text.Content != "" && len(text.Content) <= wecom.MaxText
}

// keep takes a reply, unless its id was used. The lock is held.
func (s *Server) keep(reply Sent) answer {
	if reply.ID == "" {
		reply.ID = strings.ToLower(rand.Text())
	}
	key := reply.Account + "/" + reply.ID
	if s.replyIDs[key] {
		return failure(codeWrongArgument)
	}
	s.replyIDs[key] = true
	s.sent = append(s.sent, reply)
	return answer{"msgid": reply.ID}
}

func (s *Server) sendOnEvent(r *http.Request) answer {
	in, ok := decode[struct {
		Code string      `json:"code"`
		ID   string      `json:"msgid"`
		Kind wecom.Kind  `json:"msgtype"`
		Text *wecom.Text `json:"text"`
	}](r)
	if !ok || in.Code == "" || !goodReply(in.ID, in.Kind, in.Text) {
		return failure(codeWrongArgument)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := Sent{ID: in.ID, Kind: in.Kind}
	if in.Text != nil {
		reply.Text = in.Text.Content
	}
	return s.keep(reply)
}

type stateRequest struct {
	Account  string      `json:"open_kfid"`
	User     string      `json:"external_userid"`
	State    wecom.State `json:"service_state"`
	Servicer string      `json:"servicer_userid"`
}

func (s *Server) getState(r *http.Request) answer {
	in, ok := decode[stateRequest](r)
	if !ok {
		return failure(codeWrongArgument)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.session(in.Account, in.User)
	return answer{"service_state": one.state, "servicer_userid": one.servicer}
}

func (s *Server) changeState(r *http.Request) answer {
	in, ok := decode[stateRequest](r)
	if !ok || in.State < wecom.StateAssistant || in.State > wecom.StateEnded {
		return failure(codeWrongArgument)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.session(in.Account, in.User)
	if one.state == wecom.StateEnded {
		return failure(wecom.CodeState)
	}
	one.state, one.servicer = in.State, in.Servicer
	return answer{"msg_code": rand.Text()}
}

// maxFile is the largest file that the vendor takes.
const maxFile = 20 << 20

func (s *Server) upload(r *http.Request) answer {
	f, _, err := r.FormFile("media")
	if err != nil {
		return failure(codeWrongArgument)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(content) > maxFile || len(content) <= 5 {
		return failure(codeWrongSize)
	}
	id := rand.Text()
	s.Store(id, content)
	return answer{"media_id": id, "type": r.URL.Query().Get("type")}
}

func (s *Server) download(r *http.Request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.files[r.URL.Query().Get("media_id")]
	if !ok {
		return failure(codeWrongMedia)
	}
	return answer{"file": content}
}
