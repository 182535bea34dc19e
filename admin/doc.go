// Package admin is the HTTP API for operators: everything that can be seen and done on a broker, below /api/v1.
//
//	a, err := admin.New(admin.Options{Broker: broker})
//	go a.Run(ctx)                     // figures over time, and operations
//	http.Handle("/", authenticate(a)) // which puts an auth.Identity into the context
//
// One table (routes.go) says of each route what it is called, which scope it takes, where the topic stands that the
// scope is asked for, and which function answers. The OpenAPI document is made from that table and from the types of
// package admin/api, and so is the test that asks every route as every role.
//
// No request looks at a whole topic: listings have cursors and bounds, and what is long is an operation (package
// operation), which any server of the broker carries out and shows.
package admin
