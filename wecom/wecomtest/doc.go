// Package wecomtest is the customer service of WeCom for tests: tokens, messages, replies, sessions and files with the
// vendor's limits and errors, and a sender of callbacks.
//
//	vendor := wecomtest.Start(wecomtest.Options{})
//	defer vendor.Close()
//	p, err := wecom.New(broker, vendor.Config(), wecom.Options{})
//	vendor.Say("kf1", "ann", "hello")
//	status, err := vendor.Callback("kf1").Send(ctx, url) // of p.Callback()
//
// It can fail on demand: answers with an error code, slow ones and such as are not the vendor's at all, tokens that end
// in the middle of a pull, cursors that are forgotten, messages that come again. Its callbacks can be sent again and
// forged, and be delivered as patiently as the vendor does.
package wecomtest
