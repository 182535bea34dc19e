package feishu_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/feishu"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
)

// TestLimitsOfTheVendor: a Feishu that counts calls by their signed times, which are whole seconds, refuses none of two
// hubs.
func TestLimitsOfTheVendor(t *testing.T) {
	m := vendortest.Meter{Rates: []notify.Rate{{Sends: 5, Per: time.Second}, {Sends: 100, Per: time.Minute}}}
	v := vendortest.New(t, func(_ *http.Request, body []byte) (int, string) {
		var signed struct{ Timestamp, Sign string }
		if err := json.Unmarshal(body, &signed); err != nil {
			return 200, `{"code":9499,"msg":"Bad Request"}`
		}
		seconds, _ := strconv.ParseInt(signed.Timestamp, 10, 64)
		switch {
		case signed.Sign != feishu.Sign(vendortest.Secret, signed.Timestamp):
			return 200, `{"code":19021,"msg":"sign match fail or timestamp is not within one hour from current time"}`
		case !m.Takes(time.Unix(seconds, 0), string(body)):
			return 200, `{"code":11232,"msg":"frequency limited psm"}`
		}
		return 200, `{"code":0,"msg":"success"}`
	})
	c := open(t, v.URL)
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		m.SendMany(t, k.Broker, c, 250, func(h *notify.Hub) { k.Start(h) }, k.Drain)
	})
	if n := m.Refused(); n > 0 {
		t.Errorf("%d were refused", n)
	}
}
