package console

import (
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// account is a customer service account of WeCom that the server pulls.
const account = "wkAJ2GCAAAZSfhHCt7IFSvLKtMPxyJTw"

// configuration of the server: a webhook that takes everything, one rule that fires, one that is about to, and customer
// service of WeCom.
const configuration = `
notify:
  channels:
    hook: {kind: webhook, endpoints: [ops, nights], unsigned: true, allow_private: [127.0.0.0/8]}
alerts:
  every: 1s
  rules:
    - {name: orders wait, when: queue_depth > threshold, threshold: 10, severity: critical, topics: [orders],
       action: Start workers.,
       text: "{topic} has {queue_depth:d} messages, more than {threshold:d}", promql: sum(ferry_topic_messages)}
    - {name: letters pile up, when: dlq_count > threshold, threshold: 5, for: 24h, topics: [hostile]}
    - {name: disk full, when: redis_memory_usage > threshold, threshold: 0.9, severity: page}
  channels:
    hook: [{channel: hook, to: ops}]
masks:
  - {topics: [cards.*], headers: [authorization], fields: [card, pin]}
wecom:
  accounts: [` + account + `]
  allow_private: [127.0.0.0/8]
`

// configure gives the server a configuration, and the secrets that it needs.
func (s *ferryServer) configure() {
	s.Helper()
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	s.Cleanup(hook.Close)
	s.vendor = wecomtest.Start(wecomtest.Options{})
	s.Cleanup(s.vendor.Close)
	s.vendor.Say(account, "wmAnn", "你好")
	c := s.vendor.Config()
	s.env = append(os.Environ(), "FERRY_NOTIFY_HOOK_OPS_URL="+hook.URL, "FERRY_NOTIFY_HOOK_NIGHTS_URL="+hook.URL,
		"FERRY_WECOM_CORP="+c.Corp, "FERRY_WECOM_SECRET="+string(c.Secret), "FERRY_WECOM_VENDOR="+c.Vendor,
		"FERRY_WECOM_TOKEN="+string(c.Keys[0].Token), "FERRY_WECOM_AES_KEY="+string(c.Keys[0].AESKey))
}

// callBack has WeCom say that the account has something to pull.
func (s *ferryServer) callBack() {
	s.Helper()
	status, err := s.vendor.Callback(account).Send(s.Context(), s.url+"/wecom/callback")
	if err != nil || status != http.StatusOK {
		s.Fatal(status, err)
	}
}
