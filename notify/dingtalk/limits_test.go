package dingtalk_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/dingtalk"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
)

// TestLimitsOfTheVendor: a DingTalk that counts calls by their signed times, and is silent for ten minutes after one
// too many, refuses none of two hubs; and where somebody else made it silent, all arrives later.
func TestLimitsOfTheVendor(t *testing.T) {
	for name, others := range map[string]int{"alone": 0, "shared with others": 20} {
		t.Run(name, func(t *testing.T) {
			m := vendortest.Meter{Rates: []notify.Rate{{Sends: 20, Per: time.Minute}}, Silence: 10 * time.Minute}
			v := vendortest.New(t, func(r *http.Request, body []byte) (int, string) {
				q := r.URL.Query()
				ms, _ := strconv.ParseInt(q.Get("timestamp"), 10, 64)
				for ; others > 0; others-- {
					m.Takes(time.UnixMilli(ms), "of somebody else")
				}
				switch {
				case q.Get("sign") != dingtalk.Sign(vendortest.Secret, q.Get("timestamp")):
					return 200, `{"errcode":310000,"errmsg":"sign not match"}`
				case !m.Takes(time.UnixMilli(ms), string(body)):
					return 200, `{"errcode":130101,"errmsg":"send too fast, exceed 20 times per minute"}`
				}
				return 200, `{"errcode":0,"errmsg":"ok"}`
			})
			shared := others > 0
			c := open(t, notify.Robot{URL: v.URL, Secret: vendortest.Secret})
			ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
				m.SendMany(t, k.Broker, c, 150, func(h *notify.Hub) { k.Start(h) }, k.Drain)
			})
			if (m.Refused() > 0) != shared {
				t.Errorf("%d were refused", m.Refused())
			}
		})
	}
}
