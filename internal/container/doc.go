// Package container has the containers of the brokers inside the process, where those of Go cost too much.
//
// Each names the benchmark that pays for it. None is safe for concurrent use.
package container
