// Package server is the process that operators and other programs talk to: one port, safe by default.
//
//	s, err := server.New(ctx, server.Options{Broker: broker, Mounts: []server.Mount{{Path: "/api/v1/", Handler: api}}})
//	fmt.Println(s.LoginURL())
//	err = s.Run(ctx) // until ctx ends
//
// What it serves is mounted: [Mount]. The server itself knows who asks (package auth), answers /livez, /readyz and
// /healthz, /login and /logout, and refuses everything else that comes without credentials. Each request has an id, a
// line in the log, a bound on its size and its time, and headers that browsers need to be told.
//
// Users, tokens and sessions lie in the broker: several servers of one broker know the same, and when one is gone
// another goes on.
package server
