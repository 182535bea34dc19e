// Package sdk is the home of the clients in other languages: python and typescript, both over the gateway
// (docs/gateway.md). It has no code of its own. Its tests build the ferry command, serve a broker with it, and run the
// tests of the clients and their examples against that.
package sdk
