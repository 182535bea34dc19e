package wecom_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ferrymq/ferry/wecom"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	const head = `{"msgid":"1","open_kfid":"kf1","external_userid":"ann","send_time":1615478585,"origin":3,"msgtype":`
	base := wecom.Message{ID: "1", Account: "kf1", User: "ann", Sent: 1615478585, Origin: wecom.FromCustomer}
	for text, fill := range map[string]func(m *wecom.Message){
		`"text","text":{"content":"hello","menu_id":"101"}}`: func(m *wecom.Message) {
			m.Text = &wecom.Text{Content: "hello", MenuID: "101"}
		},
		`"image","image":{"media_id":"i"}}`: func(m *wecom.Message) { m.Image = &wecom.Media{ID: "i"} },
		`"voice","voice":{"media_id":"v"}}`: func(m *wecom.Message) { m.Voice = &wecom.Media{ID: "v"} },
		`"video","video":{"media_id":"v"}}`: func(m *wecom.Message) { m.Video = &wecom.Media{ID: "v"} },
		`"file","file":{"media_id":"f"}}`:   func(m *wecom.Message) { m.File = &wecom.Media{ID: "f"} },
		`"location","location":{"latitude":23.1,"longitude":113.3,"name":"塔","address":"广州"}}`: func(m *wecom.Message) {
			m.Location = &wecom.Location{Latitude: 23.1, Longitude: 113.3, Name: "塔", Address: "广州"}
		},
		`"link","link":{"title":"t","desc":"d","url":"u","pic_url":"p"}}`: func(m *wecom.Message) {
			m.Link = &wecom.Link{Title: "t", Description: "d", URL: "u", PictureURL: "p"}
		},
		`"business_card","business_card":{"userid":"bob"}}`: func(m *wecom.Message) {
			m.BusinessCard = &wecom.BusinessCard{Servicer: "bob"}
		},
		`"miniprogram","miniprogram":{"title":"t","appid":"a","pagepath":"p","thumb_media_id":"m"}}`: func(m *wecom.Message) {
			m.MiniProgram = &wecom.MiniProgram{Title: "t", App: "a", Page: "p", ThumbID: "m"}
		},
		`"msgmenu","msgmenu":{"list":[{"type":"click","click":{"id":"1","content":"yes"}}]}}`: func(m *wecom.Message) {
			click := &wecom.MenuClick{ID: "1", Content: "yes"}
			m.Menu = &wecom.Menu{Items: []wecom.MenuEntry{{Type: "click", Click: click}}}
		},
		`"channels","channels":{"nickname":"n"}}`: func(*wecom.Message) {},
	} {
		var got wecom.Message
		if err := json.Unmarshal([]byte(head+text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		want := base
		want.Kind = got.Kind
		fill(&want)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(wecom.Message{}, "Raw")); diff != "" || got.Kind == "" {
			t.Errorf("%s: %s", text, diff)
		}
		if again, err := json.Marshal(got); err != nil || string(again) != head+text {
			t.Errorf("%s, %v", again, err)
		}
	}
}

// The account and the user of an event are inside it.
func TestEvents(t *testing.T) {
	t.Parallel()
	const text = `{"msgid":"1","send_time":1,"origin":4,"msgtype":"event",
		"event":{"event_type":"enter_session","open_kfid":"kf1","external_userid":"ann","welcome_code":"w"}}`
	var m wecom.Message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	if m.Account != "kf1" || m.User != "ann" || m.Event.WelcomeCode != "w" || m.Event.Type != "enter_session" ||
		m.Session() != "kf1/ann" {
		t.Errorf("%+v", m)
	}
}

// FuzzMessage: whatever is read is kept as it was.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"msgid":"1","msgtype":"text","text":{"content":"x"}}`))
	f.Add([]byte(`{"event":{}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m wecom.Message
		if m.UnmarshalJSON(data) == nil && string(m.Raw) != string(data) {
			t.Errorf("%q became %q", data, m.Raw)
		}
	})
}
