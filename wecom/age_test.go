package wecom_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// The first pull of an account has no cursor, and brings what the vendor keeps: three days. Later ones go on from the
// cursor, however long ago the last one was.
func TestFirstPullBringsThreeDays(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{Tokenless: 1000}, wecom.Options{})
	r.say("kf1", "ann", 5)
	r.vendor.Age(2 * 24 * time.Hour)
	ids := r.say("kf1", "ann", 4)
	r.vendor.Age(2 * 24 * time.Hour)
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.wantPublished(ids)
	ids = append(ids, r.say("kf1", "ann", 3)...)
	r.vendor.Age(4 * 24 * time.Hour)
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	r.wantPublished(ids)
}

// The vendor, too, takes no reply after 48 hours.
func TestVendorRefusesLateReplies(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	m := r.message("kf1", "ann") // which says that it is new
	r.vendor.Age(wecom.ReplyWithin + time.Hour)
	if err := r.p.Client().ReplyTo(m).Text(t.Context(), "hi"); wecom.Code(err) != wecom.CodeReplyTime {
		t.Error(err)
	}
}
