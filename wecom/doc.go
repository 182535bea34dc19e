// Package wecom brings the messages of WeCom customer service (企业微信客服) into a broker without losing one, has
// them handled in order for each customer, and sends replies.
//
//	config, err := wecom.FromEnvironment(os.LookupEnv)
//	p, err := wecom.New(broker, config, wecom.Options{})
//	http.Handle("/wecom", p.Callback()) // the vendor calls: there is something to pull
//	err = p.Run(ctx)                    // pulls it, in any number of programs
//
//	worker.Handle(w, wecom.Topic, func(ctx context.Context, m *ferry.Msg[wecom.Message]) error {
//		return p.Client().ReplyTo(&m.Value).Text(ctx, "你好")
//	})
//
// The vendor's callback has no message in it: it only says that an account has some. So the callback becomes a pull
// job, a message keyed by the account, and is answered with 200 once that is stored. Order by key makes the pulls of an
// account follow each other, on every broker. A pull reads pages from the account's cursor, publishes each page, and
// moves the cursor by compare-and-swap after the publish was acknowledged: a crash between repeats messages, which are
// recognised by the vendor's msgid, and loses none. A schedule pulls what no callback told of.
//
// Package wecomtest is the vendor for tests. docs/wecom.md has the configuration and a checklist for production.
package wecom
