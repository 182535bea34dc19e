//go:build !linux

package redistest

const namespaces = false
