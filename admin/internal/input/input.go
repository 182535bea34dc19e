// Package input has the parts that the inputs of several routes of the admin API share: parameters of path and query.
// They are in a package of their own because they have to be exported to be read, and are nobody else's business.
package input

import "github.com/ferrymq/ferry/driver"

// Paging is where a listing goes on, and how far.
type Paging struct {
	Cursor string `query:"cursor" doc:"Where to go on: next of an earlier page" maxLength:"65536"`
	Limit  int    `query:"limit" doc:"The most that are returned" default:"50" minimum:"1" maximum:"500"`
}

// TopicPath names a topic.
type TopicPath struct {
	Topic string `path:"topic" maxLength:"128"`
}

// GroupPath names a group of a topic.
type GroupPath struct {
	TopicPath
	Group string `path:"group" maxLength:"128"`
}

// MessagePath names a message, as all groups see it or as one does.
type MessagePath struct {
	TopicPath
	ID    string `path:"id" maxLength:"128"`
	Group string `query:"group" doc:"As one group sees it" maxLength:"128"`
}

// Target is the message as a driver names it.
func (in MessagePath) Target() driver.Target {
	return driver.Target{Topic: in.Topic, Group: in.Group, ID: in.ID}
}

// LetterPath names a dead letter.
type LetterPath struct {
	GroupPath
	ID string `path:"id" maxLength:"128"`
}

// Target is the letter as a driver names it.
func (in LetterPath) Target() driver.Target {
	return driver.Target{Topic: in.Topic, Group: in.Group, ID: in.ID}
}

// Letters says in a query which letters are meant.
type Letters struct {
	Topic string `query:"topic" doc:"One topic; every one by default" maxLength:"128"`
	Group string `query:"group" doc:"One group; every one by default" maxLength:"128"`
	State string `query:"state" enum:"dead,invalid" default:"dead" doc:"Dead letters, or what could not be decoded"`
	Where string `query:"where" doc:"A condition in the filter language" maxLength:"4096"`
}

// KeyPath names a key of a limit.
type KeyPath struct {
	Limit string `path:"limit" maxLength:"256"`
	Key   string `path:"key" maxLength:"1024"`
}

// RulePath names the rule of a limit.
type RulePath struct {
	Limit string `path:"limit" maxLength:"256"`
	Group string `query:"group" maxLength:"256" doc:"Of keys; by default those of no group are meant"`
}

// UserName names somebody who logs in with a password.
type UserName struct {
	Name string `path:"name" maxLength:"128"`
}

// MemberPath names a process that joined.
type MemberPath struct {
	Member string `path:"member" maxLength:"256" doc:"Name, or name/incarnation where two living ones share it"`
}

// SchedulePath names a schedule.
type SchedulePath struct {
	Name string `path:"name" maxLength:"256"`
}

// AlertPath names an alert.
type AlertPath struct {
	Rule    string `path:"rule" maxLength:"200"`
	Subject string `path:"subject" maxLength:"400" doc:"topic/group with the slash as %2F, a topic, or system"`
}

// AlertRulePath names a rule of alerts.
type AlertRulePath struct {
	Rule string `path:"rule" maxLength:"200"`
}

// UserPath names a user as a limit knows one.
type UserPath struct {
	User string `path:"userID" maxLength:"1024"`
	Name string `query:"name" doc:"Of the limit" default:"default" maxLength:"256"`
}

// Key is the user as a key of the limit.
func (in UserPath) Key() KeyPath { return KeyPath{Limit: in.Name, Key: in.User} }
