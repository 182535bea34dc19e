package main

import (
	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/notify"
)

const notifyLong = `Notifications lie in the broker, and are sent by processes that run a hub: ferry serve with
channels in ferry.yaml, or a program with a notify.Hub. These commands queue one for them, without needing their
secrets, show what became of it, wait for it, and call it back. What was not delivered is a dead letter: see 'ferry
dlq ls notifications'.`

const notifyExample = `  ferry notify channels         what can be sent to, and how the last sends ended
  ferry notify test slack ops   does it arrive?
  ferry notify send 'Disk full' 'db1 has 2 % left' --to slack:ops --to email:ops@example.com
  ferry notify status ID --wait
  ferry notify cancel ID`

func newNotify(p process) *cobra.Command {
	c := newNoun("notify", "Send, show and cancel notifications", notifyExample, newNotifySend(p), newNotifyStatus(p),
		newNotifyCancel(p), newNotifyChannels(p), newNotifyTest(p))
	c.Long = notifyLong
	return c
}

func newNotifyStatus(p process) *cobra.Command {
	c := &cobra.Command{Use: "status ID", Short: "Show what became of each target of a notification",
		Example: "  ferry notify status 01990f2e-7c00-7a00-8000-000000000000 --wait"}
	r := newRemote(p, c)
	wait := c.Flags().Bool("wait", false, "wait until every target has ended")
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			read := notify.Get
			if *wait {
				read = notify.Wait
			}
			receipt, err := read(c.Context(), s.broker, args[0])
			if err != nil {
				return err
			}
			return r.one(viewReceipt(receipt), func() error { return r.showReceipt(receipt) })
		})
	}
	return c
}

func newNotifyCancel(p process) *cobra.Command {
	c := &cobra.Command{Use: "cancel ID", Short: "Call a notification back, as far as it is not sent",
		Example: "  ferry notify cancel 01990f2e-7c00-7a00-8000-000000000000"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			n, err := notify.Cancel(c.Context(), s.broker, args[0])
			if err != nil {
				return err
			}
			v := struct {
				Notification string `json:"notification"`
				Cancelled    int    `json:"cancelled"`
			}{args[0], n}
			return r.one(v, func() error { return r.sayf("%d targets are not sent to", n) })
		})
	}
	return c
}

// notificationView is the JSON form of a receipt. It is stable.
type notificationView struct {
	Notification string       `json:"notification"`
	Status       string       `json:"status"`
	Total        int          `json:"total"`
	Succeeded    int          `json:"succeeded"`
	Failed       int          `json:"failed"`
	Cancelled    int          `json:"cancelled"`
	Targets      []targetView `json:"targets"`
}

// targetView is the JSON form of what became of a target.
type targetView struct {
	Channel  string            `json:"channel"`
	To       string            `json:"to"`
	Status   string            `json:"status"`
	Reached  *notify.Reached   `json:"reached,omitempty"`
	Digest   string            `json:"digest,omitempty"`
	Attempts int               `json:"attempts"`
	Tried    int               `json:"tried,omitempty"` // targets of the chain that failed before
	Code     string            `json:"code,omitempty"`
	Error    string            `json:"error,omitempty"`
	At       *jsontime.Time    `json:"at,omitempty"`
	Took     jsontime.Duration `json:"took,omitempty"`
}

func viewReceipt(r notify.Receipt) notificationView {
	v := notificationView{Notification: r.MessageID, Status: string(r.Status), Total: r.Total, Succeeded: r.Succeeded,
		Failed:    r.Failed,
		Cancelled: r.Cancelled}
	for _, t := range r.Targets {
		v.Targets = append(v.Targets, targetView{Channel: t.Channel, To: t.To, Status: string(t.Status), Reached: t.Reached,
			Digest: t.Digest, Attempts: t.Attempts, Tried: len(t.Tried), Code: string(t.Code), Error: t.Error,
			At: jsontime.At(t.At), Took: jsontime.Duration(t.Duration)})
	}
	return v
}

// showReceipt prints a receipt for people.
func (r *remote) showReceipt(receipt notify.Receipt) error {
	if err := r.sayf("%s  %s, %d of %d reached", receipt.MessageID, receipt.Status, receipt.Succeeded,
		receipt.Total); err != nil {
		return err
	}
	for _, t := range receipt.Targets {
		line := t.Channel + " " + t.To + ": " + string(t.Status)
		if t.Reached != nil && (t.Reached.Channel != t.Channel || t.Reached.To != t.To) {
			line += ", reached " + t.Reached.Channel + " " + t.Reached.To
		}
		if t.Error != "" {
			line += ", " + t.Error
		}
		if err := r.sayf("  %s", printable(line)); err != nil {
			return err
		}
	}
	return nil
}
