package wecom

import (
	"bytes"
	"encoding/json"
	"time"
)

// Kind of a message, the vendor's msgtype.
type Kind string

// Kinds that have a field of their own in a Message. Others are in its Raw.
const (
	KindText         Kind = "text"
	KindImage        Kind = "image"
	KindVoice        Kind = "voice"
	KindVideo        Kind = "video"
	KindFile         Kind = "file"
	KindLocation     Kind = "location"
	KindLink         Kind = "link"
	KindBusinessCard Kind = "business_card"
	KindMiniProgram  Kind = "miniprogram"
	KindMenu         Kind = "msgmenu"
	KindEvent        Kind = "event"
)

// Origin says who sent a message.
type Origin int

// Origins.
const (
	FromCustomer Origin = 3
	FromSystem   Origin = 4 // events
	FromServicer Origin = 5 // a person, in the vendor's own client
)

// Message is a message or an event of customer service, as the vendor tells it. Of the pointers the one of its Kind is
// set, none of a kind that is not known here.
type Message struct {
	ID       string `json:"msgid"`
	Account  string `json:"open_kfid"`
	User     string `json:"external_userid"`
	Sent     int64  `json:"send_time"` // seconds since 1970
	Origin   Origin `json:"origin"`
	Servicer string `json:"servicer_userid"`
	Kind     Kind   `json:"msgtype"`

	Text         *Text         `json:"text"`
	Image        *Media        `json:"image"`
	Voice        *Media        `json:"voice"`
	Video        *Media        `json:"video"`
	File         *Media        `json:"file"`
	Location     *Location     `json:"location"`
	Link         *Link         `json:"link"`
	BusinessCard *BusinessCard `json:"business_card"`
	MiniProgram  *MiniProgram  `json:"miniprogram"`
	Menu         *Menu         `json:"msgmenu"`
	Event        *Event        `json:"event"`

	// Raw is the message as it came, whole.
	Raw json.RawMessage `json:"-"`
}

// Text is what somebody wrote. MenuID is of the menu entry that was chosen, if one was.
type Text struct {
	Content string `json:"content"`
	MenuID  string `json:"menu_id,omitempty"`
}

// Media is a file at the vendor, for three days: see Client.Media.
type Media struct {
	ID string `json:"media_id"`
}

// Location is a place.
type Location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Name      string  `json:"name"`
	Address   string  `json:"address"`
}

// Link is a page. PictureURL is of what was received, ThumbID of what is sent.
type Link struct {
	Title       string `json:"title"`
	Description string `json:"desc,omitempty"`
	URL         string `json:"url"`
	PictureURL  string `json:"pic_url,omitempty"`
	ThumbID     string `json:"thumb_media_id,omitempty"`
}

// BusinessCard names a member of the corp.
type BusinessCard struct {
	Servicer string `json:"userid"`
}

// MiniProgram is a page of a mini program.
type MiniProgram struct {
	App     string `json:"appid"`
	Title   string `json:"title"`
	Page    string `json:"pagepath"`
	ThumbID string `json:"thumb_media_id"`
}

// Menu is a list to choose from.
type Menu struct {
	Head  string      `json:"head_content,omitempty"`
	Items []MenuEntry `json:"list"`
	Tail  string      `json:"tail_content,omitempty"`
}

// MenuEntry is a line of a menu: Type is "click", "view" or "miniprogram", and that field is set.
type MenuEntry struct {
	Type        string           `json:"type"`
	Click       *MenuClick       `json:"click,omitempty"`
	View        *MenuView        `json:"view,omitempty"`
	MiniProgram *MenuMiniProgram `json:"miniprogram,omitempty"`
}

// MenuClick answers with a text that carries the ID.
type MenuClick struct {
	ID      string `json:"id,omitempty"`
	Content string `json:"content"`
}

// MenuView opens a page.
type MenuView struct {
	URL     string `json:"url"`
	Content string `json:"content"`
}

// MenuMiniProgram opens a page of a mini program.
type MenuMiniProgram struct {
	App     string `json:"appid"`
	Page    string `json:"pagepath"`
	Content string `json:"content"`
}

// Event tells of a session rather than in it: Type is "enter_session", "msg_send_fail", "servicer_status_change",
// "session_status_change", "user_recall_msg", "servicer_recall_msg" or "reject_customer_msg_switch_change". Which
// fields are set depends on it.
type Event struct {
	Type        string `json:"event_type"`
	Account     string `json:"open_kfid"`
	User        string `json:"external_userid"`
	Servicer    string `json:"servicer_userid"`
	Scene       string `json:"scene"`
	SceneParam  string `json:"scene_param"`
	WelcomeCode string `json:"welcome_code"` // for Client.SendOnEvent, within 20 seconds
	MessageCode string `json:"msg_code"`     // for Client.SendOnEvent
	FailedID    string `json:"fail_msgid"`
	FailType    int    `json:"fail_type"`
	Status      int    `json:"status"`
	StopType    int    `json:"stop_type"`
	ChangeType  int    `json:"change_type"`
	OldServicer string `json:"old_servicer_userid"`
	NewServicer string `json:"new_servicer_userid"`
	RecalledID  string `json:"recall_msgid"`
	Reject      int    `json:"reject_switch"`
}

// UnmarshalJSON keeps the message whole, beside what is understood of it, which is as much as can be also when it
// fails. Account and user of an event are those of the event.
func (m *Message) UnmarshalJSON(data []byte) error {
	type plain Message // without this method
	var p plain
	err := json.Unmarshal(data, &p)
	if p.Event != nil && p.Account == "" {
		p.Account = p.Event.Account
	}
	if p.Event != nil && p.User == "" {
		p.User = p.Event.User
	}
	*m = Message(p)
	m.Raw = bytes.Clone(data)
	return err
}

// MarshalJSON returns the message as it came.
func (m Message) MarshalJSON() ([]byte, error) {
	if m.Raw != nil {
		return m.Raw, nil
	}
	type plain Message
	return json.Marshal(plain(m))
}

// Time is when it was sent, to the second.
func (m *Message) Time() time.Time { return time.Unix(m.Sent, 0) }

// Session names the conversation of a customer with an account.
func (m *Message) Session() string { return m.Account + "/" + m.User }
