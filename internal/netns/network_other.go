//go:build !linux

package netns

const namespaces = false
